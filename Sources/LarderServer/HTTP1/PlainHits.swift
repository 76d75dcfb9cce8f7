import HTTPTypes
import HTTPWire
import Larder
import LarderHTTP
import NIOCore

/// The shortest way for the commonest request: a plain GET whose answer is in the store, fresh and complete.
///
/// Decided on the bytes of the head, written from the bytes of the entry: no field is taken apart. A request with
/// anything unusual in it takes the long way, which comes to the same answer.
struct PlainHits {
    enum Content {
        /// In memory, which other answers share.
        case shared(ByteBuffer, Digest)
        case file(Body)
    }

    /// What is left to do of a plain hit whose head is written.
    struct Answer {
        var record: RequestRecord
        /// Content that is not written yet.
        var content: Content?
    }

    private let worker: Worker
    private let output: HTTP1Output
    private let isPlaintext: Bool

    /// - Parameter isPlaintext: whether the connection is without TLS.
    init(_ worker: Worker, _ output: HTTP1Output, isPlaintext: Bool) {
        self.worker = worker
        self.output = output
        self.isPlaintext = isPlaintext
    }

    /// Writes the answer to the head in the worker's view, if it is such a request: the head of it, and the content
    /// where that is in memory. Nil, having written nothing, otherwise.
    /// - Parameters:
    ///   - head: the bytes of the head.
    ///   - client: the client's address, for the log.
    func write(_ head: UnsafeRawBufferPointer, client: String) -> Answer? {
        guard worker.view.framing == .none, worker.view.persists, worker.view.version == .http11,
            worker.view.targetForm == .origin, !worker.isDraining, worker.view.isMethod("GET", in: head),
            let hasCredentials = isPlain(head)
        else { return nil }
        let request = PlainRequest(
            head: head, authority: worker.view.authority, path: worker.view.path, hasCredentials: hasCredentials,
            isPlaintext: isPlaintext)
        var answer: Answer?
        worker.service.withPlainHit(request) { hit in
            guard isPlaintext || hit.length <= HTTP1Output.smallFile else { return }
            var record = RequestRecord(
                plain: head, worker.view, client: client, start: worker.core.time.now(), isLogged: worker.log != nil)
            record.status = hit.status
            record.source = .hit
            record.bytesSent = hit.length
            answer = begin(record, hit)
        }
        return answer
    }

    /// Writes a head, and the content where that is in memory. Nil, having written nothing, for content that has to be
    /// decrypted: not on an event loop. From the second time on, that is made ready in memory, too.
    private func begin(_ record: RequestRecord, _ hit: ServiceHit) -> Answer? {
        switch hit.content {
        case .bytes(let bytes):
            writeHead(hit, roomFor: bytes.count)
            worker.output.writeBytes(bytes)
            return Answer(record: record)
        case .held(let value, let digest):
            writeHead(hit, roomFor: 0)
            return Answer(record: record, content: (value as? ByteBuffer).map { .shared($0, digest) })
        case .stored(let body, _):
            if body.isEncrypted {
                SharedBody.note(body)
                return nil
            }
            writeHead(hit, roomFor: 0)
            return Answer(record: record, content: .file(body))
        }
    }

    /// Writes what is left of an answer, and counts and logs it.
    /// - Returns: false if the stored body cannot be read: the connection has to end.
    func finish(_ answer: Answer) -> Bool {
        do {
            switch answer.content {
            case nil: break
            case .shared(let bytes, let digest): output.write(shared: bytes, digest)
            case .file(let body):
                SharedBody.note(body)
                try output.write(.complete(body), 0..<body.length.bytes)
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

    /// Nil for a request with a field on which the answer may depend beyond the URL. Else whether it has credentials.
    private func isPlain(_ head: UnsafeRawBufferPointer) -> Bool? {
        var hasCredentials = false
        for line in worker.view.fields {
            switch line.name.count {
            case 3: if head.spells("via", at: line.name) { return nil }
            case 5: if head.spells("range", at: line.name) { return nil }
            case 6: if head.spells("pragma", at: line.name) { return nil }
            case 8: if head.spells("if-match", at: line.name) { return nil }
            case 13:
                if head.spells("cache-control", at: line.name) || head.spells("if-none-match", at: line.name) {
                    return nil
                }
                if head.spells("authorization", at: line.name) { hasCredentials = true }
            case 17: if head.spells("if-modified-since", at: line.name) { return nil }
            case 19: if head.spells("if-unmodified-since", at: line.name) { return nil }
            default: break
            }
        }
        return hasCredentials
    }

    /// - Parameter count: bytes of content that follow into the same buffer.
    private func writeHead(_ hit: ServiceHit, roomFor count: Int) {
        worker.output.reserveCapacity(minimumWritableBytes: 512 + hit.fields.count + count)
        if hit.status == 200 {
            worker.output.writeStaticString("HTTP/1.1 200 OK\r\n")
        } else {
            worker.output.writeString("HTTP/1.1 \(hit.status) \(ReasonPhrase.standard(hit.status))\r\n")
        }
        worker.output.writeBytes(hit.fields)
        guard let cached = hit.cached else {
            worker.output.writeBytes(worker.dateField())
            worker.output.writeStaticString("Content-Length: ")
            worker.output.writeDecimal(hit.length)
            worker.output.writeStaticString("\r\n\r\n")
            return
        }
        worker.output.writeStaticString("Age: ")
        worker.output.writeDecimal(cached.ageSeconds)
        if !hit.hasContentLength {
            worker.output.writeStaticString("\r\nContent-Length: ")
            worker.output.writeDecimal(hit.length)
        }
        // Via and the name in Cache-Status are the same each time.
        worker.output.writeBytes(cached.fields)
        worker.output.writeDecimal(cached.freshSeconds)
        worker.output.writeStaticString("\r\n\r\n")
    }
}

extension ByteBuffer {
    /// Writes a number in decimal digits.
    mutating func writeDecimal(_ number: Int64) {
        if number >= 0, number < 10 {
            writeInteger(UInt8(number) + 0x30)
            return
        }
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
            var rest = number.magnitude
            var start = 20
            repeat {
                start -= 1
                digits[start] = UInt8(rest % 10) + 0x30
                rest /= 10
            } while rest > 0
            if number < 0 { writeInteger(UInt8(ascii: "-")) }
            writeBytes(UnsafeRawBufferPointer(rebasing: digits[start...]))
        }
    }
}
