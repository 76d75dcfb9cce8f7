import HTTPCaching
import Larder
import LarderHTTP

/// The list of members of an installed package, as it is in the store.
struct InstalledList {
    private let store: Store
    private let package: InstalledPackage

    init(_ store: Store, _ package: InstalledPackage) {
        self.store = store
        self.package = package
    }

    /// Runs `body` on each line; false if the list is gone, or damaged.
    func forEach(_ body: (MemberList.Line) throws -> Void) throws -> Bool {
        guard let entry = try store.peek(PackageKeys.list(package.id)) else { return false }
        var offset: Int64 = 0
        var rest: [UInt8] = []
        let length = entry.body.length.bytes
        while offset < length {
            try Cancellation.check()
            let end = min(length, offset + 1 << 18)
            rest += try entry.body.bytes(in: offset..<end)
            offset = end
            var start = rest.startIndex
            while let lineEnd = rest[start...].firstIndex(of: 0x0A) {
                let text = Array(rest[start..<lineEnd])
                start = lineEnd + 1
                if let line = MemberList.decode(MemberList.Line.self, text) {
                    try body(line)
                } else if MemberList.decode(MemberList.Header.self, text) == nil {
                    return false
                }
            }
            rest.removeFirst(start)
        }
        return true
    }
}

/// Looks at every member of a package.
struct PackageVerification {
    private let store: Store
    private let package: InstalledPackage
    private let rules: CacheRules
    private let isDeep: Bool

    init(_ store: Store, _ package: InstalledPackage, rules: CacheRules, isDeep: Bool) {
        self.store = store
        self.package = package
        self.rules = rules
        self.isDeep = isDeep
    }

    func run() throws -> PackageReport {
        var report = PackageReport()
        var waiting: [(url: String, key: Key, digest: Digest)] = []
        report.hasList = try InstalledList(store, package).forEach { line in
            guard let url = line.url, let key = PackagedResponse.key(of: url, rules: rules),
                let digest = Digest(hexadecimal: line.sha256)
            else { return }
            waiting.append((url, key, digest))
            if waiting.count == 64 {
                try look(at: waiting, &report)
                waiting = []
            }
        }
        try look(at: waiting, &report)
        return report
    }

    private func look(at members: [(url: String, key: Key, digest: Digest)], _ report: inout PackageReport) throws {
        if members.isEmpty { return }
        let keys = members.map { PackageKeys.member(package.id, $0.key) }
        for (member, entry) in zip(members, try keys.map { try store.peek($0) }) {
            let finding = try finding(member.digest, entry)
            report.counts[finding, default: 0] += 1
            if finding != .intact, report.problems.count < 1_000 { report.problems.append((member.url, finding)) }
        }
    }

    private func finding(_ digest: Digest, _ entry: Entry?) throws -> PackageReport.Finding {
        // What is displaced as a whole is not found any more, although some of it may still be there.
        guard let entry, package.state != .displaced else { return .missing }
        if entry.digest != digest { return .damaged }
        if !isDeep { return .intact }
        var hash = IncrementalDigest()
        var offset: Int64 = 0
        let length = entry.body.length.bytes
        do {
            while offset < length {
                try Cancellation.check()
                let end = min(length, offset + 1 << 20)
                try entry.body.bytes(in: offset..<end).withUnsafeBytes { hash.update($0) }
                offset = end
            }
        } catch let error as LarderError where error.code == .corruption {
            return .damaged
        }
        return hash.finalize() == digest ? .intact : .damaged
    }
}
