import HTTPWire
import Larder
import LarderHTTP
import NIOCore

/// The shortest way for the commonest requests, as ``PlainHits`` is for HTTP/1.1: decided on the bytes of the head, and
/// answered without a stream of its own where the windows have room for the answer.
struct HTTP2PlainHits {
    /// An answer whose head is written, and whose content has to wait for its turns.
    struct Answer {
        let record: RequestRecord
        let content: HTTP2Content
        /// Of the content, in bytes.
        let length: Int
    }

    enum Outcome {
        /// Not such a request: nothing is written.
        case none
        /// All of the answer is written.
        case complete
        case begun(Answer)
        /// It comes from an origin, with its head.
        case relayed(ServiceRelay, RequestRecord)
    }

    /// Content that goes out before its turn, in bytes: it is not worth a stream of its own.
    private static let small = 16 << 10
    /// The longest content that is written at once, in bytes: more has to count as memory.
    private static let longest = 64 << 10

    private let worker: Worker
    private let output: HTTP2Output
    private let scheduler: HTTP2Scheduler

    init(_ worker: Worker, _ output: HTTP2Output, _ scheduler: HTTP2Scheduler) {
        self.worker = worker
        self.output = output
        self.scheduler = scheduler
    }

    /// Answers a request without content.
    /// - Parameter client: the client's address, for the log.
    func write(_ head: HTTP2Head, client: String) -> Outcome {
        var outcome = Outcome.none
        let worker = worker
        // In a place of its own meanwhile: what is written may lead back here.
        var bytes = worker.plainRequest
        worker.plainRequest = PlainRequestBytes()
        defer { worker.plainRequest = bytes }
        bytes.withRequest(head.fields, limits: worker.core.headLimits) { request in
            let missing = worker.service.withPlainHit(request) { hit in
                var record = record(of: head, client: client)
                if request.question.isHead { record.methodIndex = ServerCounters.methodIndex("HEAD") }
                record.status = hit.status
                record.source = .hit
                outcome = begin(record, hit, head.stream)
            }
            if let missing, scheduler.hasMemoryForRequests(), let relay = worker.service.relay(request, missing) {
                outcome = .relayed(relay, record(of: head, client: client))
            }
        }
        return outcome
    }

    private func record(of head: HTTP2Head, client: String) -> RequestRecord {
        func text(_ name: String) -> String { head.fields.first(name: name) ?? "" }
        let logged =
            worker.log == nil
            ? nil
            : LoggedRequest(
                client: client, method: text(":method"), target: text(":path"), version: "HTTP/2.0",
                host: text(":authority"), referer: text("referer"), userAgent: text("user-agent"))
        return RequestRecord(start: worker.core.time.now(), methodIndex: 0, logged: logged)
    }

    private func begin(_ record: RequestRecord, _ hit: ServiceHit, _ stream: Int) -> Outcome {
        let count = hit.range.count
        switch hit.content {
        case .none:
            writeHead(hit, stream, endsStream: true)
            worker.finished(record)
            return .complete
        case .bytes(let bytes):
            let part = UnsafeRawBufferPointer(
                rebasing: bytes[Int(hit.range.lowerBound)..<Int(hit.range.upperBound)])
            if fits(count) { return write(record, hit, part, stream) }
            guard scheduler.hasMemoryForRequests() else { return .none }
            return begin(record, hit, HTTP2Content(Array(part)), stream)
        case .held(let value, let digest):
            guard let bytes = value as? ByteBuffer,
                let part = bytes.getSlice(at: Int(hit.range.lowerBound), length: count)
            else { return .none }
            if fits(count) { return part.withUnsafeReadableBytes { write(record, hit, $0, stream) } }
            guard scheduler.hasMemoryForRequests() else { return .none }
            return begin(record, hit, HTTP2Content(part, sharedAs: digest), stream)
        case .stored(let body, _):
            SharedBody.note(body)
            return body.isEncrypted ? .none : write(record, hit, .complete(body), stream)
        case .part(let body): return write(record, hit, .inProgress(body), stream)
        // The service has to decide.
        case .member: return .none
        }
    }

    /// Writes what is in a file, if that is little.
    private func write(_ record: RequestRecord, _ hit: ServiceHit, _ stored: StoredBytes, _ stream: Int) -> Outcome {
        guard hit.range.count <= HTTP1Output.smallFile, fits(hit.range.count) else { return .none }
        // The long way tells of what cannot be read.
        let bytes = try? stored.bytes(in: hit.range)
        return bytes?.withUnsafeBytes { write(record, hit, $0, stream) } ?? .none
    }

    /// Whether all of a content may be written now.
    private func fits(_ count: Int) -> Bool {
        guard count > 0 else { return true }
        let windows = output.windows
        return count <= Self.longest && count <= windows.initial && count <= windows.connection && output.isWritable
            && (count <= Self.small || !scheduler.isBusy)
    }

    private func write(
        _ record: RequestRecord, _ hit: ServiceHit, _ bytes: UnsafeRawBufferPointer, _ stream: Int
    ) -> Outcome {
        writeHead(hit, stream, endsStream: bytes.isEmpty)
        if !bytes.isEmpty { output.writeData(bytes, stream: stream, endsStream: true) }
        var record = record
        record.bytesSent = Int64(bytes.count)
        worker.finished(record)
        return .complete
    }

    private func begin(_ record: RequestRecord, _ hit: ServiceHit, _ content: HTTP2Content, _ stream: Int) -> Outcome {
        writeHead(hit, stream, endsStream: false)
        return .begun(Answer(record: record, content: content, length: hit.range.count))
    }

    private func writeHead(_ hit: ServiceHit, _ stream: Int, endsStream: Bool) {
        worker.fieldBytes.clear()
        let date = hit.cached == nil ? worker.dateField() : nil
        worker.fieldBytes.writeRaw(roomFor: hit.fieldsLength(date: date)) { hit.writeFields(date: date, into: &$0) }
        let fields = worker.fieldBytes
        output.writeHead(hit.status, stream: stream, endsStream: endsStream) { block in
            fields.withUnsafeReadableBytes { block.writeHPACKFields($0) }
        }
    }
}
