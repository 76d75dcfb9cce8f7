/// Strict HTTP/1.1 messages (RFC 9112), without I/O.
enum HTTPWire {}
