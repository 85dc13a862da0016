"""Servers that need nothing but to be started: stores in memory, brokers, and the like."""

from __future__ import annotations

from collections.abc import Callable

from specbuild.repairs.servers.contract import Server, Setup
from specbuild.repairs.servers.shell import background, connects, lines, named_hosts, until


def _listening(name: str, command: str) -> Callable[[Setup], str]:
    """A script for a command, with `{port}` in it, that stays in the foreground and listens there."""

    def script(setup: Setup) -> str:
        full = f"{name}-{setup.port}"
        return lines(
            named_hosts(setup.hosts),
            background(full, f"exec {command.format(port=setup.port)}"),
            until(full, connects(setup.port)),
        )

    return script


def _redis(setup: Setup) -> str:
    """Debugging commands are refused since 7.0 unless they are asked for, by an option that older ones do not know."""
    name = f"redis-{setup.port}"
    password = f"--requirepass {setup.password}" if setup.password.isalnum() else ""
    return lines(
        named_hosts(setup.hosts),
        "debug=''",
        "case $(redis-server --version) in *v=[1-6].*) ;; *) debug='--enable-debug-command yes' ;; esac",
        background(
            name,
            f"exec redis-server --port {setup.port} --bind 127.0.0.1 -::1 --dir /tmp --save '' --appendonly no"
            f" --protected-mode no {password} $debug",
        ),
        until(name, connects(setup.port)),
    )


REDIS = Server(
    name="redis",
    title="Redis",
    packages=("redis-server",),
    port=6379,
    script=_redis,
    images=("redis", "redis-server", "redis-stack", "redis-stack-server", "valkey", "keydb"),
    settings=r"REDIS|VALKEY|CELERY_BROKER|BROKER_URL",
    probability=0.85,
)

MEMCACHED = Server(
    name="memcached",
    title="memcached",
    packages=("memcached",),
    port=11211,
    script=_listening("memcached", "memcached -u nobody -l 127.0.0.1 -p {port} -U {port}"),
    images=("memcached",),
    settings=r"MEMCACHED?",
    probability=0.85,
)

MQTT = Server(
    name="mqtt",
    title="Mosquitto",
    packages=("mosquitto",),
    port=1883,
    script=_listening("mqtt", "mosquitto -p {port}"),
    images=("mosquitto", "eclipse-mosquitto"),
    settings=r"MQTT",
)

NATS = Server(
    name="nats",
    title="NATS",
    packages=("nats-server",),
    port=4222,
    script=_listening("nats", "nats-server --addr 127.0.0.1 --port {port} -js -sd /tmp/nats"),
    images=("nats",),
    settings=r"NATS",
)

ETCD = Server(
    name="etcd",
    title="etcd",
    packages=("etcd-server",),
    port=2379,
    script=_listening(
        "etcd",
        "etcd --data-dir /tmp/etcd --listen-client-urls http://127.0.0.1:{port}"
        " --advertise-client-urls http://127.0.0.1:{port}",
    ),
    images=("etcd",),
    settings=r"ETCD",
)

RABBITMQ = Server(
    name="rabbitmq",
    title="RabbitMQ",
    packages=("rabbitmq-server",),
    port=5672,
    script=lambda setup: lines(
        named_hosts(setup.hosts),
        "export RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1"
        f" RABBITMQ_NODE_PORT={setup.port} HOME=/var/lib/rabbitmq",
        background("rabbitmq", "exec rabbitmq-server"),
        until("rabbitmq", connects(setup.port)),
    ),
    images=("rabbitmq",),
    settings=r"RABBIT|AMQP|CELERY_BROKER|BROKER_URL",
    probability=0.7,
)

STORES = (REDIS, MEMCACHED, RABBITMQ, MQTT, NATS, ETCD)
