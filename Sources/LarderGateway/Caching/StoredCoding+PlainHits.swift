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
        guard request.question.isUnconditional, accepts(request.values("accept-encoding")),
            let fields = fields(hit.fields)
        else { return }
        if case .stored(let whole, _) = hit.content { SharedBody.noteMember(of: whole) }
        fields.withUnsafeBytes { body(hit.sending(member.content, length: member.length, $0)) }
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

    /// Those of the answer with the member; nil where there are some that it must not have.
    private static func fields(_ stored: UnsafeRawBufferPointer) -> [UInt8]? {
        var fields: [UInt8] = []
        fields.reserveCapacity(stored.count + 64)
        var varies = false
        for line in FieldLines(stored) {
            if forbiddenNames.contains(where: { FieldBytes.areSame(line.name, $0) }) { return nil }
            if line.isNamed("content-length") || line.isNamed("accept-ranges") { continue }
            if line.isNamed("cache-control"), FieldBytes.has(noTransform, in: line.value) { return nil }
            if line.isNamed("vary") {
                varies = varies || variesByCoding.contains { FieldBytes.has($0, in: line.value) }
            }
            if line.isNamed("etag"), line.value.first == UInt8(ascii: "\"") {
                fields.append(contentsOf: line.name)
                fields += ": W/".utf8
                fields.append(contentsOf: line.value)
                fields += "\r\n".utf8
            } else {
                fields.append(contentsOf: line.whole)
            }
        }
        if !varies { fields += "Vary: Accept-Encoding\r\n".utf8 }
        fields += "Content-Encoding: gzip\r\n".utf8
        return fields
    }

    private static let forbiddenNames = forbidden.map { Array($0.canonicalName.utf8) }
    private static let noTransform = Array("no-transform".utf8)
    private static let variesByCoding = [Array("accept-encoding".utf8), Array("*".utf8)]

    /// Whether a client accepts gzip: as it was found for the same value before.
    private static func accepts(_ value: [UInt8]?) -> Bool {
        guard let value else { return false }
        let slot = value.count % slots
        let known = answers.withLock { $0[slot].flatMap { $0.value == value ? $0.accepts : nil } }
        if let known { return known }
        let accepts = CacheRules.foldedAcceptEncoding(value, to: ["gzip"]) == "gzip"
        if value.count <= longestKept { answers.withLock { $0[slot] = (value, accepts) } }
        return accepts
    }

    private static let slots = 64
    /// Clients must not fill memory.
    private static let longestKept = 256
    private static let answers = Mutex([(value: [UInt8], accepts: Bool)?](repeating: nil, count: slots))
}
