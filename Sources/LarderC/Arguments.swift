import CLarderInterface
import Larder

/// What C passes in, checked before it is read.

func invalid(_ message: String) -> LarderError { LarderError(.invalidArgument, message) }

/// Bytes of the caller's. A length over `Int.max` arrives here as a negative one.
func bytes(_ start: UnsafeRawPointer?, _ length: Int, _ name: String) throws(LarderError) -> UnsafeRawBufferPointer {
    if length < 0 { throw invalid("\(name): a length of \(UInt(bitPattern: length)) bytes is not possible") }
    if start == nil, length > 0 { throw invalid("\(name) is NULL, with a length of \(length)") }
    return UnsafeRawBufferPointer(start: start, count: length)
}

func key(_ start: UnsafeRawPointer?, _ length: Int) throws(LarderError) -> Key {
    let bytes = try bytes(start, length, "the key")
    if length > Key.maximumLength {
        throw LarderError(
            .tooLarge, "the key has \(length) bytes; a key has 1 to \(Key.maximumLength): store under its digest")
    }
    if length == 0 { throw invalid("the key is empty; a key has 1 to \(Key.maximumLength) bytes") }
    return Key(bytes: bytes)
}

func digest(_ start: UnsafeRawPointer?, _ length: Int) throws(LarderError) -> Digest {
    let bytes = try bytes(start, length, "the digest")
    guard length == Digest.length, let digest = Digest(bytes: Array(bytes)) else {
        throw invalid("a digest has \(Digest.length) bytes, not \(length)")
    }
    return digest
}

func text(_ start: UnsafePointer<CChar>?, _ name: String) throws(LarderError) -> String {
    guard let start else { throw invalid("\(name) is NULL") }
    guard let text = String(validatingCString: start) else { throw invalid("\(name) is not UTF-8") }
    return text
}

func tags(_ start: UnsafePointer<UnsafePointer<CChar>?>?, _ count: Int) throws(LarderError) -> [String] {
    if count < 0 || count > 4_096 {
        throw LarderError(.tooLarge, "\(UInt(bitPattern: count)) tags are too many: the most is 4096")
    }
    if count == 0 { return [] }
    guard let start else { throw invalid("the tags are NULL, with a count of \(count)") }
    var tags: [String] = []
    for tag in UnsafeBufferPointer(start: start, count: count) { tags.append(try text(tag, "a tag")) }
    return tags
}

/// Where a result goes.
func output<T>(_ pointer: UnsafeMutablePointer<T>?, _ name: String) throws(LarderError) -> UnsafeMutablePointer<T> {
    guard let pointer else { throw invalid("\(name) is NULL") }
    return pointer
}

/// Throws if `flags` has a bit that is not in `known`.
func check(_ flags: UInt32, known: [Int]) throws(LarderError) {
    let rest = known.reduce(flags) { $0 & ~UInt32($1) }
    if rest != 0 { throw invalid("the flags have bits that are not known: 0x" + String(rest, radix: 16)) }
}

func has(_ flags: UInt32, _ flag: Int) -> Bool { flags & UInt32(flag) != 0 }

/// The moment or duration at which an entry stops being fresh; nil: neither is given.
func lifetime(_ lifetime: Int64, expires: Int64) throws(LarderError) -> Lifetime? {
    if lifetime != 0, expires != 0 { throw invalid("`lifetime` and `expires` are both set") }
    if expires != 0 { return .until(Timestamp(microseconds: expires)) }
    if lifetime == 0 { return nil }
    return lifetime == .max ? .never : .duration(.microseconds(max(0, lifetime)))
}

// MARK: Structures that grow

/// No structure is longer: a `size` beyond it was not set.
private let longestStructure = 4096

private func size(_ start: UnsafeRawPointer, _ name: String) throws(LarderError) -> Int {
    let size = start.loadUnaligned(as: Int.self)
    if size < MemoryLayout<Int>.size || size > longestStructure {
        throw invalid("`size` of \(name) is \(UInt(bitPattern: size)): set it to sizeof(\(name))")
    }
    return size
}

/// The structure at `pointer`, which may be shorter or longer than the one of this version. `value` has the defaults.
func structure<T: BitwiseCopyable>(
    _ pointer: UnsafePointer<T>, default value: T, _ name: String
) throws(LarderError) -> T {
    let given = UnsafeRawBufferPointer(start: pointer, count: try size(pointer, name))
    var value = value
    let known = withUnsafeMutableBytes(of: &value) { own in
        let count = min(own.count, given.count)
        own.copyMemory(from: UnsafeRawBufferPointer(rebasing: given[..<count]))
        return count
    }
    if given[known...].contains(where: { $0 != 0 }) {
        throw LarderError(.unsupported, "\(name) has members set that this version of the library does not know")
    }
    return value
}

/// Fills the structure at `pointer` as far as the caller knows it; what the library does not know becomes 0.
func fill<T: BitwiseCopyable>(_ pointer: UnsafeMutablePointer<T>, with value: T, _ name: String) throws(LarderError) {
    let target = UnsafeMutableRawBufferPointer(start: pointer, count: try size(pointer, name))
    withUnsafeBytes(of: value) { own in
        let word = MemoryLayout<Int>.size
        for index in word..<max(word, target.count) { target[index] = index < own.count ? own[index] : 0 }
    }
}
