import Foundation

/// What a process takes up, from proc(5).
struct ProcessUsage: Sendable {
    private let place: String

    init(_ process: Int32) { place = "/proc/\(process)" }

    /// Resident memory in KiB, open descriptors, and bytes it has written; nil when the process is gone.
    func look() -> (memory: Int, descriptors: Int, written: Int64)? {
        guard let memory = number("VmRSS:", in: "status"),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: place + "/fd").count
        else { return nil }
        return (Int(memory), descriptors, number("wchar:", in: "io") ?? 0)
    }

    private func number(_ name: String, in file: String) -> Int64? {
        guard let text = try? String(contentsOfFile: "\(place)/\(file)", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name) })
        else { return nil }
        return line.dropFirst(name.count).split(whereSeparator: { $0 == " " || $0 == "\t" }).first.flatMap { Int64($0) }
    }
}
