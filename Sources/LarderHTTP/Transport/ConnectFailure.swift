/// What stood in the way of a connection: ``TransportError/Kind/cannotConnect``.
public enum ConnectFailure: String, Sendable, Hashable {
    /// The host's name has no address.
    case nameNotFound
    /// No process listens on the port.
    case refused
    /// There is no way to the address, or a limit of this machine.
    case unreachable
    /// No TLS: the certificate is not trusted, is not for the host, or the two sides have nothing in common.
    case tls
}
