fn main() {}
// rust is most of this project
