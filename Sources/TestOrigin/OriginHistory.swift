/// The requests, connections and failures of an origin so far.
public struct OriginHistory: Sendable {
    /// All requests whose head arrived, in this order.
    public internal(set) var requests: [OriginRequest] = []
    /// The connections accepted.
    public internal(set) var connectionsAccepted = 0
    /// Those connections that are still open.
    public internal(set) var connectionsOpen = 0
    /// Descriptions of input that could not be understood.
    public internal(set) var failures: [String] = []
}
