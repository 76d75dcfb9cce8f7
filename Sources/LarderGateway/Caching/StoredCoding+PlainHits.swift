import HTTPCaching
import Larder
import LarderHTTP
import LarderServer
import Locks
import NIOCore

/// The same for plain hits, on bytes.
extension StoredCoding {
    /// Runs `body` on the answer: with the gzip member, where one is stored. Does not run it where the client gets the
    /// body of that, or the long way has to find out.
    static func send(_ hit: PlainHit, to request: PlainRequest, _ body: (PlainHit) -> Void) {
        guard let member = member(of: hit.content) else { return body(hit) }
        guard request.question.isUnconditional, accepts(request) else { return }
        withFields(hit.fields) { fields in
            if case .stored(let whole, _) = hit.content { SharedBody.noteMember(of: whole) }
            body(hit.sending(member.content, length: member.length, fields))
        }
    }

    /// The gzip member that is stored for a content; nil where none is.
    private static func member(of content: PlainHit.Content) -> (content: PlainHit.Content, length: Int64)? {
        switch content {
        case .member(.bytes(let bytes)): (.bytes(bytes), Int64(bytes.count))
        case .member(.held(let value, let digest)):
            (value as? ByteBuffer).map { (.held($0, digest), Int64($0.readableBytes)) }
        case .stored(let body, let digest): body.compressedForm.map { (.stored($0, digest), $0.length.bytes) }
        case .bytes, .held, .part, .none: nil
        }
    }

    /// Runs `body` on the fields of the answer with the member; not where there are some that it must not have.
    private static func withFields(_ stored: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
        // An entity tag becomes two bytes longer, in a line of eight or more.
        let room = stored.count + stored.count / 4 + added.utf8CodeUnitCount + varying.utf8CodeUnitCount
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { memory in
            guard let count = write(stored, to: memory) else { return }
            body(UnsafeRawBufferPointer(rebasing: memory[..<count]))
        }
    }

    /// Writes the fields of the answer with the member.
    /// - Returns: how many bytes; nil where there are some that it must not have.
    private static func write(_ stored: UnsafeRawBufferPointer, to memory: UnsafeMutableRawBufferPointer) -> Int? {
        var count = 0
        func append(_ bytes: UnsafeRawBufferPointer) {
            UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
            count += bytes.count
        }
        func append(_ text: StaticString) {
            append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }
        // What stays is copied together.
        var start = 0
        var end = 0
        var varies = false
        for line in FieldLines(stored) {
            switch use(of: line, &varies) {
            case .kept: break
            case .forbidden: return nil
            case .leftOut:
                append(UnsafeRawBufferPointer(rebasing: stored[start..<end]))
                start = end + line.whole.count
            case .weakened:
                let value = end + line.whole.count - line.value.count - 2
                append(UnsafeRawBufferPointer(rebasing: stored[start..<value]))
                append("W/")
                start = value
            }
            end += line.whole.count
        }
        append(UnsafeRawBufferPointer(rebasing: stored[start..<end]))
        if !varies { append(varying) }
        append(added)
        return count
    }

    private static let varying: StaticString = "Vary: Accept-Encoding\r\n"
    private static let added: StaticString = "Content-Encoding: gzip\r\n"

    /// What the answer with the member has of a stored field.
    private enum FieldUse {
        case kept, leftOut, weakened
        /// There is no such answer.
        case forbidden
    }

    /// - Parameter varies: becomes true where the line says that the response depends on `Accept-Encoding`.
    private static func use(of line: FieldLines.Line, _ varies: inout Bool) -> FieldUse {
        switch line.name.count {
        case 4 where line.isNamed("etag"): return line.value.first == UInt8(ascii: "\"") ? .weakened : .kept
        case 4 where line.isNamed("vary"):
            varies = varies || variesByCoding.contains { FieldBytes.has($0, in: line.value) }
            return .kept
        case 13 where line.isNamed("accept-ranges"), 14 where line.isNamed("content-length"): return .leftOut
        case 13 where line.isNamed("cache-control"):
            let isForbidden = mayForbid(line.value) && FieldBytes.has(noTransform, in: line.value)
            return isForbidden ? .forbidden : .kept
        case let length where forbiddenLengths >> length & 1 == 1:
            return forbiddenNames.contains { FieldBytes.areSame(line.name, $0) } ? .forbidden : .kept
        default: return .kept
        }
    }

    /// False for nearly all lists without `no-transform`, and for none with it.
    private static func mayForbid(_ list: UnsafeRawBufferPointer) -> Bool {
        guard list.count >= noTransform.count else { return false }
        for index in 0...(list.count - noTransform.count) where list[index + 2] == UInt8(ascii: "-") {
            if list[index] | 0x20 == UInt8(ascii: "n") { return true }
        }
        return false
    }

    private static let forbiddenNames = forbidden.map { Array($0.canonicalName.utf8) }
    private static let forbiddenLengths = forbiddenNames.reduce(UInt64(0)) { $0 | 1 << $1.count }
    private static let noTransform = Array("no-transform".utf8)
    private static let variesByCoding = [Array("accept-encoding".utf8), Array("*".utf8)]

    /// Whether a client accepts gzip.
    private static func accepts(_ request: PlainRequest) -> Bool {
        if let value = request.onlyValue("accept-encoding") { return accepts(value) }
        return request.values("accept-encoding")?.withUnsafeBytes { accepts($0) } ?? false
    }

    /// As it was found for the same value before.
    private static func accepts(_ value: UnsafeRawBufferPointer) -> Bool {
        let slot = value.count % slots
        let known = answers.withLock { answers in
            answers[slot].flatMap { value.isEqual(to: $0.value) ? $0.accepts : nil }
        }
        if let known { return known }
        let accepts = CacheRules.foldedAcceptEncoding(Array(value), to: ["gzip"]) == "gzip"
        if value.count <= longestKept { answers.withLock { $0[slot] = (Array(value), accepts) } }
        return accepts
    }

    private static let slots = 64
    /// Clients must not fill memory.
    private static let longestKept = 256
    private static let answers = Mutex([(value: [UInt8], accepts: Bool)?](repeating: nil, count: slots))
}
