import HTTPCaching
import HTTPTypes

/// An answer of the origin.
package struct ScriptedAnswer: Sendable {
    package var head: HTTPResponse
    package var body: [UInt8]
    package var isComplete: Bool
    package var delaySeconds: Double

    package init(head: HTTPResponse, body: [UInt8], isComplete: Bool = true, delaySeconds: Double = 0) {
        self.head = head
        self.body = body
        self.isComplete = isComplete
        self.delaySeconds = delaySeconds
    }
}

/// What the client got.
package struct Outcome: Sendable {
    package var status: Int
    package var fields: HTTPFields
    package var body: [UInt8]
    /// Requests that reached the origin, in order.
    package var sent: [HTTPRequest]
    /// Whether the answer came from a stored response without asking the origin.
    package var isCached: Bool
    package var cacheStatus: String
    package var obstacle: StoringObstacle?

    package init(
        status: Int, fields: HTTPFields, body: [UInt8], sent: [HTTPRequest] = [], isCached: Bool = false,
        cacheStatus: String = "", obstacle: StoringObstacle? = nil
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.sent = sent
        self.isCached = isCached
        self.cacheStatus = cacheStatus
        self.obstacle = obstacle
    }

    package var text: String { String(decoding: body, as: UTF8.self) }
}
