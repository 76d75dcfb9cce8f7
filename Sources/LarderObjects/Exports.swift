// Programs that start an object server set up its connections with types of this module: `ServerConfiguration`,
// `GatewayTLS`, `GatewayLimits` and others.
@_exported import LarderServer
