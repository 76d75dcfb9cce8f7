#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What the kernel counts for this process. Linux; nil elsewhere.
enum ProcessFigures {
    /// Bytes this process caused to be sent to a disk: `write_bytes` of /proc/self/io, which counts pages as they are
    /// made dirty. It does not count file systems in memory.
    static func writtenBytes() -> Int64? { field("write_bytes:", of: "/proc/self/io") }

    /// Resident memory that is not backed by a file: `RssAnon` of /proc/self/status. The mapped index is not included.
    static func anonymousBytes() -> Int64? { field("RssAnon:", of: "/proc/self/status").map { $0 * 1024 } }

    private static func field(_ name: String, of path: String) -> Int64? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            return line.dropFirst(name.count).split(whereSeparator: { $0 == " " || $0 == "\t" }).first.flatMap {
                Int64($0)
            }
        }
        return nil
    }
}
