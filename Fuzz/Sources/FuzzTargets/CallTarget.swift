#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Calls of the C interface in any order. One store for all runs: it is empty after each.
@Sendable func fuzzCalls(_ input: [UInt8]) {
    do { try CallSequence.run(input, in: directoryOfCalls) } catch { fatalError("\(error)") }
}

private let directoryOfCalls: String = {
    var template = Array("/tmp/larder-fuzz-calls.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { fatalError("mkdtemp: \(errno)") }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) + "/store"
}()
