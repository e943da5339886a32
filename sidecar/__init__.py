"""The turnledger sidecar: one process, one store, two gRPC services.

Arrows between the rooms point one way: domain <- (store, telemetry, config) <- services <- server <- app <- cli.
"""
