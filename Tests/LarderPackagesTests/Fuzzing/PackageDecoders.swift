import Foundation
import HTTPCaching
import Larder

@testable import LarderPackages

/// What decodes packages, and what has to hold of the results. `tools/fuzz` and `FuzzTests` feed it.
enum PackageDecoders {
    /// Something that does not hold.
    struct Finding: Error, CustomStringConvertible {
        let description: String
    }

    private static func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        if !condition { throw Finding(description: what()) }
    }

    /// A manifest, the lines of a list of members, and a signature.
    static func manifest(_ bytes: [UInt8]) throws {
        if let manifest = try? Manifest(parsing: bytes) {
            let again = try Manifest(parsing: Array(manifest.text.utf8))
            try require(again.entries == manifest.entries, "a manifest that is written back with other entries")
            for entry in manifest.entries {
                let encoded = URLText.encoded(entry.url)
                if let url = URLText.absolute(encoded, below: manifest.baseURL) {
                    try require(
                        URLText.encoded(url).utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a URL that is not encoded")
                }
                let names = URLText.memberNames(of: encoded, below: manifest.baseURL)
                try require(names.count <= 66, "\(names.count) names of one member")
            }
        }
        for line in bytes.split(separator: 0x0A) {
            if let read = MemberList.decode(MemberList.Line.self, Array(line)) {
                let again = MemberList.decode(MemberList.Line.self, Array(read.line.utf8))
                try require(again == read, "a line that is written back otherwise")
            }
            if let header = MemberList.decode(MemberList.Header.self, Array(line)) {
                let again = MemberList.decode(MemberList.Header.self, Array(header.line.utf8))
                try require(again == header, "a first line that is written back otherwise")
                _ = PackageContents.moment(header.created)
            }
        }
        _ = PackageKey(String(decoding: bytes, as: UTF8.self))
    }

    /// A whole archive, which is read as an installation reads it.
    static func archive(_ bytes: [UInt8]) throws {
        let folder = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
        let path = FilePath("\(folder)/larder-archive-\(UUID().uuidString).zip")
        try Data(bytes).write(to: URL(fileURLWithPath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        var limits = ArchiveLimits()
        limits.memberBytes = .mebibytes(1)
        limits.totalBytes = .mebibytes(4)
        var count: Int64 = 0
        do {
            let archive = try ZipReader(path, password: nil, limits: limits)
            let contents = try PackageContents(
                archive, InstallOptions(), rules: CacheRules(), now: Instant(milliseconds: 1_767_225_600_000))
            try contents.forEach { item in
                let content =
                    switch item {
                    case .response(let member): member.content
                    case .data(let data): data.content
                    }
                guard case .archive(let file) = content else { return }
                let stream = try archive.open(file)
                while let piece = try stream.next() { count += Int64(piece.count) }
            }
            try require(contents.ignoredCount <= archive.fileCount, "more files than there are")
        } catch is PackageError {
            // As it has to be.
        }
        try require(count <= 4 << 20, "\(count) bytes, over the limit")
    }
}
