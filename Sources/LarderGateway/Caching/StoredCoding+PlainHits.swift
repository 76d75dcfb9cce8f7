import HTTPCaching
import Larder
import LarderHTTP
import LarderServer

/// The same for plain hits, on bytes.
extension StoredCoding {
    /// Runs `body` on the answer with the gzip member; does not run it where the client gets the body itself, or the
    /// long way has to find out.
    static func send(
        _ hit: PlainHit, _ member: Body, _ digest: Digest, to request: PlainRequest, _ body: (PlainHit) -> Void
    ) {
        guard request.question.isUnconditional,
            CacheRules.foldedAcceptEncoding(request.values("accept-encoding"), to: ["gzip"]) == "gzip",
            let fields = fields(hit.fields)
        else { return }
        fields.withUnsafeBytes { body(hit.sending(member, digest, $0)) }
    }

    /// Those of the answer with the member; nil where there are some that it must not have.
    private static func fields(_ stored: UnsafeRawBufferPointer) -> [UInt8]? {
        var fields: [UInt8] = []
        fields.reserveCapacity(stored.count + 64)
        var varies = false
        for line in FieldLines(stored) {
            if forbiddenNames.contains(where: { FieldBytes.areSame(line.name, $0) }) { return nil }
            if line.isNamed("content-length") || line.isNamed("accept-ranges") { continue }
            if line.isNamed("cache-control"), has("no-transform", line.value) { return nil }
            if line.isNamed("vary") { varies = varies || has("accept-encoding", line.value) || has("*", line.value) }
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

    /// Whether a list has a member, which is given in lower case.
    private static func has(_ member: String, _ list: UnsafeRawBufferPointer) -> Bool {
        FieldBytes.members(Array(list)).contains { FieldBytes.lowercased($0).elementsEqual(member.utf8) }
    }
}
