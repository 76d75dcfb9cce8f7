import HTTPTypes
import HTTPWire
import Larder
import LarderHTTP
import NIOCore

/// The shortest way for the commonest requests: those whose answer one stored response gives, which is fresh, and
/// complete or has the range that is asked for.
///
/// Decided on the bytes of the head, written from the bytes of the entry. A request with anything unusual in it takes
/// the long way, which comes to the same answer.
struct PlainHits {
    enum Content {
        /// In memory, which other answers share.
        case shared(ByteBuffer, Digest)
        /// The same, to be written as the client takes it: TLS makes a copy of all that it is given.
        case paced(ByteBuffer, Digest)
        case stored(StoredBytes, Range<Int64>)
        /// It comes from an origin, with its head. With the head of the request, if it does not.
        case relayed(ServiceRelay, head: [UInt8])
    }

    /// What is left to do of a plain hit whose head is written.
    struct Answer {
        var record: RequestRecord
        /// Content that is not written yet.
        var content: Content?
        /// The client wants no other.
        var closes = false
    }

    /// Up to this many bytes of shared content are copied behind the head: that is less work than a write of their own.
    private static let copiedBytes = 16 << 10
    /// From this many bytes on content in the store's mapping goes to the system from there: a copy is more work than a
    /// second piece in the write.
    private static let lentBytes = 8 << 10
    /// No status line is longer, with the field that ends the connection and the empty line.
    private static let statusLineLength = 100

    private let worker: Worker
    private let output: HTTP1Output
    private let isPlaintext: Bool

    /// - Parameter isPlaintext: whether the connection is without TLS.
    init(_ worker: Worker, _ output: HTTP1Output, isPlaintext: Bool) {
        self.worker = worker
        self.output = output
        self.isPlaintext = isPlaintext
    }

    /// Writes the answer to the request in the worker's view, if it is such a one: the head of it, and the content
    /// where that is in the store's mapping. Nil, having written nothing, otherwise.
    /// - Parameters:
    ///   - head: the bytes of the head.
    ///   - client: the client's address, for the log.
    func write(_ head: UnsafeRawBufferPointer, client: String) -> Answer? {
        guard !worker.isDraining, let request = PlainRequest(head, worker.view, isPlaintext: isPlaintext) else {
            return nil
        }
        let closes = !worker.view.persists
        var answer: Answer?
        func newRecord() -> RequestRecord {
            RequestRecord(
                plain: head, worker.view, client: client, start: worker.core.time.now(), isLogged: worker.log != nil)
        }
        let missing = worker.service.withPlainHit(request) { hit in
            var record = newRecord()
            if request.question.isHead { record.methodIndex = ServerCounters.methodIndex("HEAD") }
            record.status = hit.status
            record.source = .hit
            record.bytesSent = Int64(hit.range.count)
            answer = begin(record, hit, closes: closes)
        }
        if let missing, let relay = worker.service.relay(request, missing) {
            answer = Answer(record: newRecord(), content: .relayed(relay, head: Array(head)))
        }
        answer?.closes = closes
        return answer
    }

    /// Writes a head, and the content where that is in memory. Nil, having written nothing, for content that has to be
    /// decrypted: not on an event loop. From the second time on, that is made ready in memory, too.
    private func begin(_ record: RequestRecord, _ hit: ServiceHit, closes: Bool) -> Answer? {
        switch hit.content {
        case .none:
            write(hit, closes)
            return Answer(record: record)
        case .bytes(let bytes):
            let part = UnsafeRawBufferPointer(rebasing: bytes[Int(hit.range.lowerBound)..<Int(hit.range.upperBound)])
            if part.count < Self.lentBytes {
                write(hit, closes, part)
            } else {
                write(hit, closes)
                output.write(lent: part)
            }
            return Answer(record: record)
        case .held(let value, let digest):
            guard let bytes = value as? ByteBuffer,
                let part = bytes.getSlice(at: Int(hit.range.lowerBound), length: hit.range.count)
            else { return nil }
            if part.readableBytes <= Self.copiedBytes {
                part.withUnsafeReadableBytes { write(hit, closes, $0) }
                return Answer(record: record)
            }
            write(hit, closes)
            let isPaced = !isPlaintext && part.readableBytes > HTTP1Output.smallFile
            return Answer(record: record, content: isPaced ? .paced(part, digest) : .shared(part, digest))
        case .stored(let body, _):
            if body.isEncrypted || (!isPlaintext && hit.range.count > HTTP1Output.smallFile) {
                SharedBody.note(body)
                return nil
            }
            write(hit, closes)
            return Answer(record: record, content: .stored(.complete(body), hit.range))
        case .part(let body):
            write(hit, closes)
            return Answer(record: record, content: .stored(.inProgress(body), hit.range))
        // The service has to decide.
        case .member: return nil
        }
    }

    /// Writes what is left of an answer, and counts and logs it.
    /// - Returns: false if the stored body cannot be read: the connection has to end.
    func finish(_ answer: Answer) -> Bool {
        do {
            switch answer.content {
            case nil, .paced, .relayed: break
            case .shared(let bytes, let digest): output.write(shared: bytes, digest)
            case .stored(let stored, let range):
                if case .complete(let body) = stored { SharedBody.note(body) }
                try output.write(stored, range)
            }
            output.answered(answer.record)
            return true
        } catch {
            worker.core.logger.error(
                "cannot read a stored body", metadata: ["category": "requests", "error": "\(error)"])
            var record = answer.record
            record.isIncomplete = true
            record.bytesSent = 0
            worker.finished(record)
            return false
        }
    }

    /// Writes a head.
    /// - Parameters:
    ///   - closes: whether it is the last on the connection.
    ///   - content: follows it.
    private func write(_ hit: ServiceHit, _ closes: Bool, _ content: UnsafeRawBufferPointer? = nil) {
        let date = hit.cached == nil ? worker.dateField() : nil
        let length = Self.statusLineLength + hit.fieldsLength(date: date) + (content?.count ?? 0)
        worker.output.writeRaw(roomFor: length) { output in
            switch hit.status {
            case 200: output.write("HTTP/1.1 200 OK\r\n")
            case 206: output.write("HTTP/1.1 206 Partial Content\r\n")
            case 304: output.write("HTTP/1.1 304 Not Modified\r\n")
            default:
                output.write("HTTP/1.1 ")
                output.writeDecimal(Int64(hit.status))
                output.write(" ")
                output.write(Array(ReasonPhrase.standard(hit.status).utf8))
                output.write("\r\n")
            }
            hit.writeFields(date: date, into: &output)
            output.write(closes ? "Connection: close\r\n\r\n" : "\r\n")
            if let content { output.write(content) }
        }
    }
}
