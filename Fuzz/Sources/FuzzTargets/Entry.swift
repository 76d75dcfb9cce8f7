#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Which decoder a run fuzzes: `LARDER_FUZZ_TARGET`.
let target: @Sendable ([UInt8]) -> Void = {
    let name = getenv("LARDER_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = targets[name] else {
        let names = targets.keys.sorted().joined(separator: ", ")
        let text = Array("LARDER_FUZZ_TARGET is '\(name)': one of \(names)\n".utf8)
        _ = write(2, text, text.count)
        exit(64)
    }
    return target
}()

let targets: [String: @Sendable ([UInt8]) -> Void] = [
    "records": fuzzRecords, "names": fuzzNames, "keys": fuzzKeys, "pages": fuzzPages, "arguments": fuzzArguments,
    "requests": fuzzRequests, "responses": fuzzResponses, "chunks": fuzzChunks,
    "fields": fuzz(HTTPDecoders.field), "exchanges": fuzz(HTTPDecoders.exchange),
    "metadata": fuzz(HTTPDecoders.metadata), "calls": fuzzCalls, "paths": fuzz(ObjectDecoders.path),
    "results": fuzz(ObjectDecoders.result), "manifests": fuzz(PackageDecoders.manifest),
    "archives": fuzz(PackageDecoders.archive),
]

/// What libFuzzer calls.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target(Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : count)))
    return 0
}

/// Ends the process, which is how libFuzzer hears of it.
func require(_ condition: Bool, _ what: @autoclosure () -> String) {
    if !condition { fatalError(what()) }
}

/// A decoder that says by an error what does not hold.
private func fuzz(_ decode: @escaping @Sendable ([UInt8]) throws -> Void) -> @Sendable ([UInt8]) -> Void {
    { input in
        do { try decode(input) } catch { fatalError("\(error)") }
    }
}
