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
    /// What is left to do of a plain hit whose head is written.
    struct Answer {
        var record: RequestRecord
        /// Content that is in a file.
        var stored: (body: Body, digest: Digest)?
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
        let core = worker.core
        if let service = core.service { return write(head, client: client, service) }
        guard core.allowsPlainHits, worker.view.framing == .none, worker.view.persists,
            worker.view.version == .http11, worker.view.targetForm == .origin, !worker.isDraining,
            let authority = worker.view.authority, worker.view.isMethod("GET", in: head),
            !asksForMore(head), isNormal(authority, head)
        else { return nil }
        let key = key(authority, head)
        var answer: Answer?
        worker.cache.withPlainHit(Key(bytes: key)) { hit in
            guard isPlaintext || hit.length <= HTTP1Output.smallFile else { return }
            var record = RequestRecord(
                plain: head, worker.view, client: client, start: core.time.now(), isLogged: worker.log != nil)
            record.status = hit.status
            record.source = .hit
            record.bytesSent = hit.length
            answer = begin(record, hit.content) { writeHead(hit, roomFor: $0) }
        }
        return answer
    }

    /// Writes a head, and the content where that is in memory.
    /// - Parameter writeHead: gets the bytes of content that follow into the same buffer.
    private func begin(
        _ record: RequestRecord, _ content: PlainHit.Content, _ writeHead: (Int) -> Void
    ) -> Answer {
        switch content {
        case .bytes(let bytes):
            writeHead(bytes.count)
            worker.output.writeBytes(bytes)
            return Answer(record: record)
        case .stored(let body, let digest):
            writeHead(0)
            return Answer(record: record, stored: (body, digest))
        }
    }

    /// As above, where a service answers.
    private func write(_ head: UnsafeRawBufferPointer, client: String, _ service: any GatewayService) -> Answer? {
        guard worker.view.framing == .none, worker.view.persists, worker.view.version == .http11,
            worker.view.targetForm == .origin, !worker.isDraining, worker.view.isMethod("GET", in: head),
            !asksForMore(head), !hasCredentials(head)
        else { return nil }
        var answer: Answer?
        service.withPlainHit(UnsafeRawBufferPointer(rebasing: head[worker.view.path])) { hit in
            guard isPlaintext || hit.length <= HTTP1Output.smallFile else { return }
            var record = RequestRecord(
                plain: head, worker.view, client: client, start: worker.core.time.now(), isLogged: worker.log != nil)
            record.status = 200
            record.source = .hit
            record.bytesSent = hit.length
            answer = begin(record, hit.content) { writeHead(hit, roomFor: $0) }
        }
        return answer
    }

    private func hasCredentials(_ head: UnsafeRawBufferPointer) -> Bool {
        worker.view.fields.contains { $0.name.count == 13 && head.spells("authorization", at: $0.name) }
    }

    private func writeHead(_ hit: ServiceHit, roomFor count: Int) {
        worker.output.reserveCapacity(minimumWritableBytes: 256 + hit.fields.count + count)
        worker.output.writeStaticString("HTTP/1.1 200 OK\r\n")
        worker.output.writeBytes(hit.fields)
        worker.output.writeBytes(worker.dateField())
        worker.output.writeStaticString("Content-Length: ")
        worker.output.writeDecimal(hit.length)
        worker.output.writeStaticString("\r\n\r\n")
    }

    /// Writes what is left of an answer, and counts and logs it.
    /// - Returns: false if the stored body cannot be read: the connection has to end.
    func finish(_ answer: Answer) -> Bool {
        do {
            if let (body, digest) = answer.stored {
                if let bytes = try worker.hotBodies.bytes(of: body, digest) {
                    output.write(shared: bytes, digest)
                } else {
                    try output.write(.complete(body), 0..<body.length.bytes)
                }
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

    /// The key of the target URI.
    private func key(_ authority: Range<Int>, _ head: UnsafeRawBufferPointer) -> [UInt8] {
        let prefix: StaticString = isPlaintext ? "http://" : "https://"
        let path = worker.view.path
        return [UInt8](
            unsafeUninitializedCapacity: prefix.utf8CodeUnitCount + authority.count + path.count
        ) { buffer, count in
            let target = UnsafeMutableRawBufferPointer(buffer)
            func append(_ bytes: UnsafeRawBufferPointer) {
                UnsafeMutableRawBufferPointer(rebasing: target[count...]).copyMemory(from: bytes)
                count += bytes.count
            }
            append(UnsafeRawBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
            append(UnsafeRawBufferPointer(rebasing: head[authority]))
            append(UnsafeRawBufferPointer(rebasing: head[path]))
        }
    }

    /// Whether the request has a field on which the answer may depend beyond the URL.
    private func asksForMore(_ head: UnsafeRawBufferPointer) -> Bool {
        for line in worker.view.fields {
            switch line.name.count {
            case 3: if head.spells("via", at: line.name) { return true }
            case 5: if head.spells("range", at: line.name) { return true }
            case 6: if head.spells("pragma", at: line.name) { return true }
            case 8: if head.spells("if-match", at: line.name) { return true }
            case 13:
                if head.spells("cache-control", at: line.name) || head.spells("if-none-match", at: line.name) {
                    return true
                }
            case 17: if head.spells("if-modified-since", at: line.name) { return true }
            case 19: if head.spells("if-unmodified-since", at: line.name) { return true }
            default: break
            }
        }
        return false
    }

    /// Whether host and port are as they are in a key: lower case, no default port.
    private func isNormal(_ authority: Range<Int>, _ head: UnsafeRawBufferPointer) -> Bool {
        var colon: Int?
        for index in authority {
            switch head[index] {
            case 0x61...0x7A, 0x30...0x39, UInt8(ascii: "."), UInt8(ascii: "-"): break
            case UInt8(ascii: ":") where colon == nil: colon = index
            default: return false
            }
        }
        guard let colon else { return true }
        let port = colon + 1..<authority.upperBound
        return port.count >= 1 && head[port.lowerBound] != UInt8(ascii: "0") && !head.spells("80", at: port)
            && !head.spells("443", at: port)
    }

    /// - Parameter count: bytes of content that follow into the same buffer.
    private func writeHead(_ hit: PlainHit, roomFor count: Int) {
        worker.output.reserveCapacity(minimumWritableBytes: 512 + hit.fields.count + count)
        if hit.status == 200 {
            worker.output.writeStaticString("HTTP/1.1 200 OK\r\n")
        } else {
            worker.output.writeString("HTTP/1.1 \(hit.status) \(ReasonPhrase.standard(hit.status))\r\n")
        }
        worker.output.writeBytes(hit.fields)
        worker.output.writeStaticString("Age: ")
        worker.output.writeDecimal(hit.ageSeconds)
        if !hit.hasContentLength {
            worker.output.writeStaticString("\r\nContent-Length: ")
            worker.output.writeDecimal(hit.length)
        }
        // Via and the name in Cache-Status are the same each time.
        worker.output.writeBytes(worker.core.hitFields)
        worker.output.writeDecimal(hit.freshSeconds)
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
