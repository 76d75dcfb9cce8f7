/// What has happened at an origin.
public struct OriginHistory: Sendable {
    /// All requests whose head arrived, in this order.
    public internal(set) var requests: [OriginRequest] = []
    /// The connections accepted.
    public internal(set) var connectionsAccepted = 0
    /// Those of them that still stand.
    public internal(set) var connectionsOpen = 0
    /// What could not be understood, in words.
    public internal(set) var failures: [String] = []
}
