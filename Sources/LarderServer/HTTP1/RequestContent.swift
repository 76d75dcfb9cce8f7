import HTTPWire

/// The content of a request that is being read: finds it in the bytes of the connection, and passes it to the load that
/// sends it on. Without a load it is read and dropped.
final class RequestContent {
    /// How a step of reading ended.
    enum Step {
        /// More has to come, or the load has no room.
        case incomplete
        case complete
        case malformed(WireError)
        /// More than the limit.
        case tooLong
        /// The request is answered, and the rest of its content is so long that it is quicker to connect again.
        case notWorthReading
    }

    /// What is read of content that no load wants, so that the connection can be used again.
    private static let discardLimit: Int64 = 256 << 10

    private var decoder: BodyDecoder
    private let limit: Int64
    /// Where it goes.
    private var inlet: BodyInlet?
    private(set) var received: Int64 = 0
    private(set) var isComplete = false
    /// The client waits for 100 before it sends content.
    private(set) var owesContinue: Bool

    /// - Parameter limit: of the content, in bytes.
    init(_ framing: BodyFraming, owesContinue: Bool, limit: Int64) {
        decoder = BodyDecoder(framing)
        self.owesContinue = owesContinue
        self.limit = limit
    }

    /// Bytes that wait for the load.
    var heldBytes: Int { inlet?.heldBytes ?? 0 }

    /// Whether there is room for more.
    var takesMore: Bool { inlet?.takesMore ?? true }

    /// A load wants the content.
    func connect(_ inlet: BodyInlet) { self.inlet = inlet }

    /// Reads as far as there are bytes and room.
    /// - Parameters:
    ///   - position: the first byte that was not read; moved on.
    ///   - isAnswered: whether the answer is complete.
    func read(_ bytes: UnsafeRawBufferPointer, at position: inout Int, isAnswered: Bool) -> Step {
        var step = Step.incomplete
        do throws(WireError) {
            loop: while takesMore {
                switch try decoder.next(bytes, at: &position) {
                case .payload(let range):
                    received += Int64(range.count)
                    inlet?.offer(Array(bytes[range]))
                case .needsMore: break loop
                case .end:
                    isComplete = true
                    break loop
                }
            }
        } catch {
            step = .malformed(error)
        }
        if case .malformed = step { return step }
        if received > limit { return .tooLong }
        if isComplete {
            inlet?.finish()
            return .complete
        }
        return inlet == nil && isAnswered && received > Self.discardLimit ? .notWorthReading : .incomplete
    }

    /// The load asks for content.
    /// - Returns: whether the client has to be told to send it.
    func isWanted() -> Bool {
        guard owesContinue, !isComplete else { return false }
        owesContinue = false
        return received == 0
    }

    /// The load gets no more.
    func cutOff() {
        inlet?.fail()
        inlet = nil
    }
}
