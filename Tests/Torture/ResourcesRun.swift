import Foundation

/// R3, for cases that need a separate process, file system or user. See `Limits` for the cases.
struct ResourcesRun {
    private let options: Options
    private let directory: String

    init(_ options: Options) throws {
        self.options = options
        directory = try options.makeDirectory()
    }

    /// The size of the file system that a case runs on; nil: none of its own.
    private static let cases: [(mode: String, needsRoot: Bool, disk: String?)] = [
        ("file-size", false, nil), ("full-disk", true, "6m"), ("crowded-disk", true, "8m"), ("descriptors", false, nil),
        ("memory", false, nil),
        ("foreign", true, nil), ("permission", false, nil), ("read-only", true, "16m"),
        ("lasting-io", false, nil), ("lasting-read-only", false, nil), ("lasting-full-disk", true, "40m"),
    ]

    func run() throws -> Bool {
        var failed = 0
        // For how long the lasting faults last.
        let seconds = options.isTimed ? Int((options.minutes ?? 0) * 60) : 4
        for item in Self.cases {
            if item.needsRoot, geteuid() != 0 {
                print("\(item.mode): skipped, needs root")
                continue
            }
            let place = directory + "/" + item.mode
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            if let size = item.disk {
                do {
                    try Limits.mount("-t", "tmpfs", "-o", "size=\(size)", "tmpfs", place)
                } catch {
                    print("\(item.mode): skipped, no mount allowed here")
                    continue
                }
            }
            let child = try Child(
                [place + "/store", item.mode, "1", "0", "\(seconds)"], output: directory + "/out-\(item.mode)")
            let complaint = child.wait()
            print("\(item.mode): \(complaint ?? "passed")")
            for line in child.lines where line.hasPrefix("lasting-") { print("  " + line) }
            if complaint != nil { failed += 1 }
            if item.disk != nil, complaint == nil || !options.keepsStores { unmount(place) }
        }
        if failed == 0, !options.keepsStores { try? FileManager.default.removeItem(atPath: directory) }
        print("violations: \(failed)")
        return failed == 0
    }

    private func unmount(_ place: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["umount", place]
        try? process.run()
        process.waitUntilExit()
    }
}
