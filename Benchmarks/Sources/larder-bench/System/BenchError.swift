import SystemPackage

/// Why a run cannot continue: what was wrong, and what to do about it.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// The failure of a system call, from `errno`.
    static func system(_ call: String, _ subject: String, code: Int32 = errno) -> BenchError {
        BenchError("\(call) \(subject): \(Errno(rawValue: code))")
    }
}
