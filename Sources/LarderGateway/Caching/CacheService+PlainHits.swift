import HTTPWire
import Larder
import LarderHTTP
import LarderServer

/// Hits whose key is the URL: it is made of the bytes of the head.
extension CacheService {
    func withPlainHit(_ request: PlainRequest, _ body: (ServiceHit) -> Void) -> Key? {
        guard allowsPlainHits, let authority = request.authority, Self.isNormal(authority, request.head),
            !(request.via.map { hasBeenHere([$0]) } ?? false)
        else { return nil }
        let key = Key(bytes: Self.key(authority, request))
        let isAbsent = cache.withPlainHit(key, request.question, SharedBody.kinds, values: { request.values($0) }) {
            hit in
            StoredCoding.send(hit, to: request) { body(ServiceHit($0, hitFields)) }
        }
        return isAbsent ? key : nil
    }

    /// The key of the target URI.
    private static func key(_ authority: Range<Int>, _ request: PlainRequest) -> [UInt8] {
        let prefix: StaticString = request.isPlaintext ? "http://" : "https://"
        let (head, path) = (request.head, request.path)
        // Of the initializers, the one with a closure asks the runtime for the type of the array with every call.
        var bytes: [UInt8] = []
        bytes.reserveCapacity(prefix.utf8CodeUnitCount + authority.count + path.count)
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: head[authority]))
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: head[path]))
        return bytes
    }

    /// Whether host and port are as they are in a key: lower case, no default port.
    private static func isNormal(_ authority: Range<Int>, _ head: UnsafeRawBufferPointer) -> Bool {
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
}
