import HTTPWire
import LarderHTTP

/// A GET or HEAD with a target in origin form, without content, and whose answer may be at hand. Valid inside the call
/// that it is handed to only.
package struct PlainRequest {
    package let head: UnsafeRawBufferPointer
    package let authority: Range<Int>?
    package let path: Range<Int>
    package let question: PlainQuestion
    /// Whether it has `Authorization`.
    package let hasCredentials: Bool
    /// Whether it came without TLS.
    package let isPlaintext: Bool
    /// The value of `Via`.
    private let viaValue: UnsafeRawBufferPointer?
    let lines: [FieldLine]

    /// Of a head of HTTP/1.1. Nil for a request that only the long way understands.
    init?(_ head: UnsafeRawBufferPointer, _ view: RequestHeadView, isPlaintext: Bool) {
        guard view.framing == .none, view.version == .http11, view.targetForm == .origin else { return nil }
        let isHead = view.isMethod("HEAD", in: head)
        guard isHead || view.isMethod("GET", in: head) else { return nil }
        self.init(
            head, view.fields, authority: view.authority, path: view.path, isHead: isHead, isPlaintext: isPlaintext)
    }

    /// Nil for a request with a field that only the long way understands.
    init?(
        _ head: UnsafeRawBufferPointer, _ fields: [FieldLine], authority: Range<Int>?, path: Range<Int>, isHead: Bool,
        isPlaintext: Bool
    ) {
        var conditions = PlainQuestion.Conditions()
        var via: UnsafeRawBufferPointer?
        var hasCredentials = false
        /// False for the second line with a name.
        func note(_ line: FieldLine, _ value: inout UnsafeRawBufferPointer?) -> Bool {
            defer { value = UnsafeRawBufferPointer(rebasing: head[line.value]) }
            return value == nil
        }
        for line in fields {
            // It may name fields that end here (RFC 9110 section 7.6.1).
            if line.kind == .connection {
                let value = line.value
                guard head.spells("keep-alive", at: value) || head.spells("close", at: value) else { return nil }
            }
            let isKnown =
                switch line.name.count {
                case 3: head.spells("via", at: line.name) ? note(line, &via) : true
                case 5: head.spells("range", at: line.name) ? note(line, &conditions.range) : true
                case 6: !head.spells("pragma", at: line.name)
                case 8: !head.spells("if-match", at: line.name) && !head.spells("if-range", at: line.name)
                case 13 where head.spells("cache-control", at: line.name): note(line, &conditions.cacheControl)
                case 13 where head.spells("if-none-match", at: line.name): note(line, &conditions.ifNoneMatch)
                case 17 where head.spells("if-modified-since", at: line.name): note(line, &conditions.ifModifiedSince)
                case 19: !head.spells("if-unmodified-since", at: line.name)
                default: true
                }
            guard isKnown else { return nil }
            if line.name.count == 13, head.spells("authorization", at: line.name) { hasCredentials = true }
        }
        self.head = head
        self.authority = authority
        self.path = path
        self.hasCredentials = hasCredentials
        self.isPlaintext = isPlaintext
        // TLS makes a copy of all that it is given.
        question = PlainQuestion(
            isHead: isHead, conditions, longestPart: isPlaintext ? .max : HTTP1Output.smallFile)
        viaValue = via
        lines = fields
    }

    /// The value of `Via`.
    package var via: String? { viaValue.map { String(decoding: $0, as: UTF8.self) } }

    /// The target as the client sent it.
    package var target: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: head[path]) }

    /// The value of the only line with a name, which is in lower case; nil if there is none, or several.
    package func onlyValue(_ name: StaticString) -> UnsafeRawBufferPointer? {
        var value: UnsafeRawBufferPointer?
        for line in lines where line.name.count == name.utf8CodeUnitCount && head.spells(name, at: line.name) {
            guard value == nil else { return nil }
            value = UnsafeRawBufferPointer(rebasing: head[line.value])
        }
        return value
    }

    /// The values of all lines with a name, which is in lower case, joined by commas; nil if there is none.
    package func values(_ name: String) -> [UInt8]? {
        var name = name
        return name.withUTF8 { name in
            var values: [UInt8]?
            for line in lines where line.name.count == name.count && isSpelled(name, at: line.name) {
                if values != nil { values?.append(UInt8(ascii: ",")) }
                values = (values ?? []) + head[line.value]
            }
            return values
        }
    }

    private func isSpelled(_ name: UnsafeBufferPointer<UInt8>, at place: Range<Int>) -> Bool {
        for index in 0..<place.count {
            let byte = head[place.lowerBound + index]
            if (byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte) != name[index] { return false }
        }
        return true
    }
}
