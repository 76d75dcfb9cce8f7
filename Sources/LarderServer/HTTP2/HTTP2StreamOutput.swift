import HTTPTypes
import HTTPWire
import NIOCore

/// What goes to the client on one stream, as far as the windows allow. On the event loop only.
final class HTTP2StreamOutput {
    /// The stream's number.
    let id: Int
    private let output: HTTP2Output
    private let scheduler: HTTP2Scheduler
    /// Who hears whether the kernel took the content, also when the stream is over.
    var responder: HTTP2Responder?
    /// How much of what was marked is not known.
    private var marks = 0
    /// What the client lets the stream send beyond the initial window, or less than it.
    var balance: Int64 = 0
    /// The stream is not closed.
    private(set) var isOpen = true
    /// The end of the answer is written.
    private(set) var hasEnded = false
    /// Content that was written, in bytes.
    private var written: Int64 = 0
    /// Of this, what the kernel has taken.
    private(set) var taken: Int64 = 0
    /// What the scheduler counts as in memory for this stream, and for its open files.
    private var held: Int64 = 0
    private var filesHeld: Int64 = 0

    init(_ id: Int, _ output: HTTP2Output, _ scheduler: HTTP2Scheduler) {
        self.id = id
        self.output = output
        self.scheduler = scheduler
    }

    /// True if the stream is open, and the client has taken most of what went to the connection.
    var isWritable: Bool { isOpen && output.isWritable }

    private var window: Int64 { output.windows.initial + balance }

    /// What may be written now, in bytes.
    var room: Int64 { max(0, min(window, output.windows.connection)) }

    /// Of the connection: see ``SendQueue/unacknowledged(_:)``.
    var unacknowledgedBytes: Int { output.unacknowledgedBytes }

    /// Whether the window of the stream itself is used up.
    var isOutOfWindow: Bool { window <= 0 }

    // MARK: Writing

    /// Writes an interim head.
    func write(_ head: HTTPResponse) { write(.objects(head), length: nil, keepsLength: true, endsStream: false) }

    /// Writes a head.
    /// - Parameters:
    ///   - length: of the content, in bytes; nil where it is not known, or there is none.
    ///   - keepsLength: whether the head's own `Content-Length` is written.
    func write(_ head: HeadForm, length: Int64?, keepsLength: Bool, endsStream: Bool) {
        guard isOpen else { return }
        output.writeHead(head.status.code, stream: id, endsStream: endsStream) { block in
            head.forEachField { name, value in
                if keepsLength || !name.spells("content-length") { block.writeHPACKField(name, value) }
            }
            if let length { block.writeHPACKField(HTTPField(name: .contentLength, value: String(length))) }
        }
        if endsStream { ended() }
    }

    /// Writes content, or no more than the end of it.
    func write(_ bytes: UnsafeRawBufferPointer, endsStream: Bool) {
        guard isOpen else { return }
        let count = Int64(bytes.count)
        written += count
        balance -= count
        output.writeData(bytes, stream: id, endsStream: endsStream)
        if endsStream { hasEnded = true }
        mark(count)
    }

    /// The end of the stream was written with its head.
    private func ended() {
        hasEnded = true
        mark(0)
    }

    private func mark(_ count: Int64) {
        marks += 1
        output.mark(self, count: count)
    }

    /// What was marked is with the kernel, or will never be.
    func settle(_ count: Int64, isTaken: Bool) {
        marks -= 1
        if isTaken { taken += count } else { written -= count }
        if let responder {
            responder.settled(count, isTaken: isTaken)
        } else {
            hold(waiting: 0, files: 0)
        }
        letGo()
    }

    /// Whether the kernel has everything that was written.
    var isAllTaken: Bool { marks == 0 }

    /// Makes what was written go out.
    func flush() { output.flush() }

    /// The stream is closed.
    func close() {
        isOpen = false
        letGo()
    }

    private func letGo() {
        if !isOpen, isAllTaken { responder = nil }
    }

    /// Tells the scheduler how much is in memory for this stream.
    /// - Parameters:
    ///   - waiting: what has not been written yet, in bytes.
    ///   - files: what open files count as.
    func hold(waiting: Int64, files: Int64) {
        let (bytes, count) = (waiting + written - taken - held, files - filesHeld)
        guard bytes != 0 || count != 0 else { return }
        held += bytes
        filesHeld += count
        scheduler.hold(bytes, files: count)
    }
}
