import Foundation
import Larder

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a peer needs to find a body. It is made before the clock starts, because it is the program's work, not the
/// cache's.
struct Name: Sendable {
    /// The number it was made from.
    let index: Int
    /// For Larder and LMDB.
    var key = Key(bytes: [])
    /// For peers that keep files: NUL-terminated.
    var path: [CChar] = []
    /// For peers with keys of text.
    var text = ""
    /// For URL caches.
    var request: URLRequest?

    init(_ index: Int) { self.index = index }

    /// The key of body `index` as text: as long as a short URL is, 38 bytes, in the order of the numbers.
    static func text(_ index: Int) -> String { String(decoding: bytes(index), as: UTF8.self) }

    /// The same as bytes.
    static func bytes(_ index: Int) -> [UInt8] {
        var bytes = prefix
        var digits = [UInt8](repeating: UInt8(ascii: "0"), count: 10)
        var rest = index
        var position = digits.count
        while rest > 0, position > 0 {
            position -= 1
            digits[position] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        bytes.append(contentsOf: digits)
        return bytes
    }

    private static let prefix = Array("https://www.example.com/item".utf8)
}
