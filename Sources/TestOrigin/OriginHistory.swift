/// What has happened at an origin.
public struct OriginHistory: Sendable {
    /// All requests whose head arrived, in this order.
    public internal(set) var requests: [OriginRequest] = []
    /// The connections accepted.
    public internal(set) var connectionsAccepted = 0
    /// Those of them that are still open.
    public internal(set) var connectionsOpen = 0
    /// Descriptions of what could not be understood.
    public internal(set) var failures: [String] = []
}
