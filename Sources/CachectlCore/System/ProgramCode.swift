import Foundation

/// The code of this program and its libraries, as far as it is in memory.
package enum ProgramCode {
    /// Releases the code that only the start needed: of 22 MiB a server uses 16. What is called again comes back from
    /// the page cache. Does nothing but on Linux (madvise(2), `MADV_DONTNEED`).
    package static func release() {
        #if os(Linux)
            guard let maps = try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8) else { return }
            for range in mappings(maps) {
                madvise(UnsafeMutableRawPointer(bitPattern: range.lowerBound), range.count, MADV_DONTNEED)
            }
        #endif
    }

    /// Where code of files is mapped that cannot be written to. What was written would be lost, as it is in no file.
    /// - Parameter maps: as in `/proc/self/maps` (proc_pid_maps(5)).
    static func mappings(_ maps: String) -> [Range<UInt>] {
        maps.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] == "r-xp", words[5].hasPrefix("/") else { return nil }
            let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
        }
    }
}
