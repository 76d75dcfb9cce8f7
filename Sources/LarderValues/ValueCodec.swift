/// How values of a type become the bodies of entries, and bodies become values.
///
/// A codec that is `Hashable` shares the values that it decoded with every equal one on the same store. For others,
/// keep one ``Values`` for as long as its decoded values are of use.
public protocol ValueCodec<Value>: Sendable {
    associatedtype Value: Sendable

    /// The bytes of a body that `decode(_:)` makes an equal value of.
    /// - Throws: any error; the caller of ``Values`` gets it, and nothing is stored.
    func encode(_ value: Value) throws -> [UInt8]

    /// The value of a body. Called for bytes that anyone may have put under the key.
    /// - Parameter bytes: the whole body; the span must not leave the call.
    /// - Throws: any error: then there is no value, and ``Values`` says why.
    func decode(_ bytes: RawSpan) throws -> Value

    /// The memory that a decoded value takes, in bytes, about: 0 or more. What costs more than a quarter of
    /// `Configuration.memoryLimit` is decoded each time.
    /// - Parameters:
    ///   - value: a decoded value.
    ///   - length: of its body, in bytes; the default.
    func cost(of value: Value, length: Int) -> Int
}

extension ValueCodec {
    /// The length of the body.
    public func cost(of value: Value, length: Int) -> Int { length }
}

/// Bodies as they are.
public struct BytesCodec: ValueCodec, Hashable {
    /// The only one there is.
    public init() {}

    /// The bytes.
    public func encode(_ value: [UInt8]) -> [UInt8] { value }

    /// The bytes.
    public func decode(_ bytes: RawSpan) -> [UInt8] { bytes.withUnsafeBytes { Array($0) } }
}

extension ValueCodec where Self == BytesCodec {
    /// Bodies as they are.
    public static var bytes: BytesCodec { BytesCodec() }
}
