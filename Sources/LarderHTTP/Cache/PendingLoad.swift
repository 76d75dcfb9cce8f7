import HTTPCaching
import HTTPTypes

/// A request that the store cannot answer, with what was found for it.
package struct PendingLoad: Sendable {
    /// What the rules said: the request to send, and why.
    var exchange: Exchange
}
