import Foundation

/// Values as JSON (RFC 8259), by Foundation's coders.
public struct JSONCodec<Value: Codable & Sendable>: ValueCodec, Hashable {
    private let coders: Coders<JSONEncoder, JSONDecoder>

    /// With settings of Foundation's own.
    public init() { coders = Coders(nil, nil) }

    /// - Parameters:
    ///   - encoder: with the settings for values that are stored. Do not change it any more.
    ///   - decoder: with the settings for values that are read. Do not change it any more.
    public init(encoder: JSONEncoder, decoder: JSONDecoder) { coders = Coders(encoder, decoder) }

    /// Errors: those of `JSONEncoder.encode`.
    public func encode(_ value: Value) throws -> [UInt8] {
        try Array((coders.encoder ?? JSONEncoder()).encode(value))
    }

    /// Errors: those of `JSONDecoder.decode`.
    public func decode(_ bytes: RawSpan) throws -> Value {
        try (coders.decoder ?? JSONDecoder()).decode(Value.self, from: bytes.withUnsafeBytes { Data($0) })
    }
}

/// Values as property lists, by Foundation's coders.
public struct PropertyListCodec<Value: Codable & Sendable>: ValueCodec, Hashable {
    private let format: PropertyListSerialization.PropertyListFormat

    /// - Parameter format: of what is stored. Default: binary. Every format is read.
    public init(format: PropertyListSerialization.PropertyListFormat = .binary) { self.format = format }

    /// Errors: those of `PropertyListEncoder.encode`.
    public func encode(_ value: Value) throws -> [UInt8] {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        return try Array(encoder.encode(value))
    }

    /// Errors: those of `PropertyListDecoder.decode`.
    public func decode(_ bytes: RawSpan) throws -> Value {
        try PropertyListDecoder().decode(Value.self, from: bytes.withUnsafeBytes { Data($0) })
    }
}

extension ValueCodec {
    /// Values as JSON, with settings of Foundation's own.
    public static func json<V: Codable & Sendable>() -> JSONCodec<V> where Self == JSONCodec<V> { JSONCodec() }

    /// Values as binary property lists.
    public static func propertyList<V: Codable & Sendable>() -> PropertyListCodec<V>
    where Self == PropertyListCodec<V> { PropertyListCodec() }
}

/// A pair of coders; equal to one of the same objects.
private struct Coders<Encoder: AnyObject, Decoder: AnyObject>: Hashable, @unchecked Sendable {
    // SAFETY: the initialiser forbids changes of the coders; coding with them leaves them as they are.
    let encoder: Encoder?
    let decoder: Decoder?

    init(_ encoder: Encoder?, _ decoder: Decoder?) {
        self.encoder = encoder
        self.decoder = decoder
    }

    static func == (one: Coders, other: Coders) -> Bool {
        one.encoder === other.encoder && one.decoder === other.decoder
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(encoder.map(ObjectIdentifier.init))
        hasher.combine(decoder.map(ObjectIdentifier.init))
    }
}
