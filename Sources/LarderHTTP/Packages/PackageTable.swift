import HTTPCaching
import Larder

/// The packages of a store, as readers of responses see them: the body of one entry.
///
/// A line for each package: the generation, how its members are displaced, how they stand beside other responses, the
/// moment before which stored responses give way to them, their origins, and the record in JSON, with a space between
/// the fields. Only a process that changes packages reads the record.
package struct PackageTable: Sendable, Hashable {
    /// One package.
    package struct Row: Sendable, Hashable {
        package var generation: String
        /// True if its members can be found only while there is ``PackageKeys/owner(_:)``.
        package var isWhole: Bool
        /// True if a member is only found for a URL without any other stored response.
        package var isLast: Bool
        /// Responses stored before this moment count as absent where there is a member. Nil: none.
        package var supersedes: Instant?
        /// The origins of its members; nil: any.
        package var origins: [String]?
        /// The record of the package, in JSON.
        package var record: [UInt8]

        package init(
            generation: String, isWhole: Bool, isLast: Bool, supersedes: Instant?, origins: [String]?,
            record: [UInt8]
        ) {
            self.generation = generation
            self.isWhole = isWhole
            self.isLast = isLast
            self.supersedes = supersedes
            self.origins = origins
            self.record = record
        }

        fileprivate init?(_ line: ArraySlice<UInt8>) {
            let fields = line.split(separator: 0x20, maxSplits: 5, omittingEmptySubsequences: false)
            guard fields.count == 6 else { return nil }
            let words = fields[..<5].map { String(decoding: $0, as: UTF8.self) }
            generation = words[0]
            isWhole = words[1] == "whole"
            isLast = words[2] == "last"
            supersedes = Int64(words[3]).map { Instant(milliseconds: $0) }
            origins = words[4] == "*" ? nil : words[4].split(separator: ",").map(String.init)
            record = Array(fields[5])
        }

        fileprivate var line: [UInt8] {
            let words = [
                generation, isWhole ? "whole" : "single", isLast ? "last" : "beside",
                supersedes.map { "\($0.milliseconds)" } ?? "-", origins.map { $0.joined(separator: ",") } ?? "*",
            ]
            return Array(words.joined(separator: " ").utf8) + [0x20] + record
        }
    }

    package var rows: [Row]
    /// True if there were lines that are not of this form: which packages there are is not known then.
    package private(set) var isDamaged = false

    package init(rows: [Row] = []) { self.rows = rows }

    /// Reads an encoding.
    package init(_ body: [UInt8]) {
        let lines = body.split(separator: 0x0A)
        rows = lines.compactMap { Row($0) }
        isDamaged = rows.count < lines.count
    }

    /// The encoding.
    package var encoded: [UInt8] { rows.reduce(into: []) { $0 += $1.line + [0x0A] } }

    /// The table of a store. Does not count as a use of it. May wait.
    package init(in store: Store) throws {
        let entry = try store.peek(PackageKeys.table(store.applicationVersion))
        self = try entry.map { Self(try $0.body.bytes()) } ?? Self()
    }

    /// The keys of the members for a URL, of all packages that may have it.
    package func members(_ url: String) -> [(row: Row, key: Key)] {
        if rows.isEmpty { return [] }
        let origin = Self.origin(of: url)
        return rows.filter { $0.origins?.contains(origin) ?? true }.map {
            ($0, PackageKeys.member($0.generation, url))
        }
    }

    /// The URL of a member of one of the packages; nil for any other key.
    package func url(ofMember key: Key) -> String? {
        guard let url = PackageKeys.url(ofMember: key) else { return nil }
        return rows.contains { key.hasPrefix(PackageKeys.member($0.generation)) } ? url : nil
    }

    /// Scheme, host and port of a URL.
    package static func origin(of url: String) -> String {
        guard let start = url.firstRange(of: "://")?.upperBound else { return url }
        return String(url[..<(url[start...].firstIndex { $0 == "/" || $0 == "?" } ?? url.endIndex)])
    }
}
