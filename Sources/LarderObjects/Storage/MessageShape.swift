/// Where the messages within a message are, by the numbers of their fields.
///
/// A decoder makes an object of some hundred bytes for each message, and two bytes are enough for an empty one. So a
/// message is looked through before it is decoded: with more messages in it than its length explains it is not what it
/// says. Texts cost at most some times what they take, and are not counted.
/// https://protobuf.dev/programming-guides/encoding/
package struct MessageShape: Sendable {
    private let fields: [UInt64: MessageShape]

    private init(_ fields: [UInt64: MessageShape] = [:]) { self.fields = fields }

    private static let leaf = MessageShape()
    private static let properties = MessageShape([1: leaf, 2: leaf, 3: leaf])
    private static let symlink = MessageShape([4: properties])
    package static let directory = MessageShape([
        1: MessageShape([2: leaf, 6: properties]), 2: MessageShape([2: leaf]), 3: symlink, 5: properties,
    ])
    static let tree = MessageShape([1: directory, 2: directory])
    package static let result = MessageShape([
        2: MessageShape([2: leaf, 7: properties]), 3: MessageShape([3: leaf, 5: leaf]), 6: leaf, 8: leaf, 10: symlink,
        11: symlink, 12: symlink,
    ])
    /// Of requests over gRPC.
    package static let getResult = MessageShape([2: leaf])
    package static let updateResult = MessageShape([2: leaf, 3: result])
    package static let digests = MessageShape([2: leaf])
    package static let uploads = MessageShape([2: MessageShape([1: leaf])])
    package static let plain = leaf

    /// Each is an object of some hundred bytes when it is decoded.
    private static let mostMessages = 1 << 20

    /// Whether bytes can be a message of this shape: well-formed, and without more messages in it than its length
    /// explains. The densest that is sent, a link of two short names with time and mode, has 23 bytes for four.
    package func fits(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var left = min(64 + bytes.count / 5, Self.mostMessages)
        return take(bytes, &left)
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ left: inout Int) -> Bool {
        var position = 0
        while position < bytes.count {
            guard let tag = Self.varint(bytes, &position) else { return false }
            switch tag & 7 {
            case 0: guard Self.varint(bytes, &position) != nil else { return false }
            case 1: position += 8
            case 5: position += 4
            case 2:
                guard let length = Self.varint(bytes, &position), length <= UInt64(bytes.count - position) else {
                    return false
                }
                let end = position + Int(length)
                if let shape = fields[tag >> 3] {
                    left -= 1
                    guard left >= 0 else { return false }
                    let content = UnsafeRawBufferPointer(rebasing: bytes[position..<end])
                    guard shape.take(content, &left) else { return false }
                }
                position = end
            // Groups are not in any of these messages.
            default: return false
            }
        }
        return position == bytes.count
    }

    private static func varint(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard position < bytes.count else { return nil }
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }
}
