import HTTPCaching
import Larder
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Makes packages of files.
public enum Package {
    /// Packs a folder: each file is a response to GET.
    ///
    /// - Parameters:
    ///   - archive: the path of the archive; replaced if it exists, once the new one is whole.
    ///   - files: the folder, and the selection of its files.
    ///   - options: name, version, signature and so on.
    ///   - onMember: called with each member as it is found. Default: nil.
    /// - Returns: a summary of the package.
    /// - Throws: ``PackageError``; `CancellationError` in a cancelled task.
    @discardableResult
    public static func create(
        _ archive: FilePath, from files: FolderOptions, _ options: PackageOptions = PackageOptions(),
        onMember: (String) -> Void = { _ in }
    ) throws -> PackageSummary {
        let now = options.created ?? SystemClock().now()
        let style = ManifestStyle(files.hasMediaTypes ? .fourFields : .threeFields)
        let writer = try PackageWriter(archive, options, style: style, at: now)
        let base = URLText.encoded(files.baseURL.hasSuffix("/") ? String(files.baseURL.dropLast()) : files.baseURL)
        guard let (host, path) = URLText.hostAndPath(base) else {
            throw PackageError(.badManifest, "the base URL '\(Key(files.baseURL))' has no host")
        }
        if base.contains("?") || PackageStore.key(of: base) == nil {
            throw PackageError(
                .badManifest, "the base URL '\(Key(files.baseURL))' is not an HTTP URL without a query")
        }
        let folder = FolderWalk(FilePath(files.folder), files)
        for file in try folder.files(writer.skip) {
            onMember(file.name)
            let digest = try file.digest()
            let whole = (files.usesFileTimes ? file.modified : now.microseconds / 1_000_000) + files.lastModifiedOffset
            let lastModified = Timestamp(microseconds: whole * 1_000_000)
            let expires = files.maxAge.map { Timestamp(microseconds: (whole + $0) * 1_000_000) }
            let type = files.hasMediaTypes ? files.mediaTypes.type(of: file.name) : nil
            var fields: [[String]] = []
            if let type { fields.append(["Content-Type", type]) }
            fields.append(["Last-Modified", format(lastModified)])
            if let expires { fields.append(["Expires", format(expires)]) }
            try writer.add(
                PackageWriter.Member(
                    url: base + "/" + URLText.encoded(path: file.name), path: host + path + "/" + file.name,
                    digest: digest, length: file.length, fields: fields, lastModified: lastModified, expires: expires,
                    mediaType: type, source: FileSource(file.path, length: file.length, digest: digest)))
        }
        if let data = files.dataFolder {
            var all = files
            (all.maxItemBytes, all.excludes) = (nil, [])
            for file in try FolderWalk(FilePath(data), all).files(writer.skip) {
                let digest = try file.digest()
                try writer.add(
                    data: (files.dataKey.map { $0 + "/" } ?? "") + file.name,
                    FileSource(file.path, length: file.length, digest: digest), digest: digest,
                    modified: Timestamp(microseconds: file.modified * 1_000_000))
            }
        }
        return try writer.finish(baseURL: base)
    }

    static func format(_ moment: Timestamp) -> String {
        HTTPDate.format(Instant(milliseconds: moment.microseconds / 1_000))
    }
}

/// The files below a folder that will be packed, in the order of the bytes of their names.
struct FolderWalk {
    struct File {
        /// Below the folder.
        let name: String
        let path: FilePath
        let length: Int64
        /// Seconds since 1970.
        let modified: Int64

        func digest() throws -> Digest {
            var hash = IncrementalDigest()
            var count: Int64 = 0
            do {
                let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
                try file.closeAfter {
                    var buffer = [UInt8](repeating: 0, count: 1 << 18)
                    while true {
                        try Cancellation.check()
                        let got = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
                        if got == 0 { break }
                        buffer.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<got])) }
                        count += Int64(got)
                    }
                }
            } catch let error as Errno {
                throw PackageError(.io, "a file cannot be read", archive: path, cause: error)
            }
            if count != length { throw PackageError(.io, "the file changed while it was read", archive: path) }
            return hash.finalize()
        }
    }

    private let root: FilePath
    private let options: FolderOptions

    init(_ root: FilePath, _ options: FolderOptions) {
        self.root = root
        self.options = options
    }

    /// - Parameter skip: called with each file that is left out, and the reason.
    func files(_ skip: (String, String) -> Void) throws -> [File] {
        var found: [File] = []
        var folders = [""]
        while let folder = folders.popLast() {
            try Cancellation.check()
            let path = folder.isEmpty ? root : root.appending(folder)
            let names: [String]
            do {
                names = try FileManager.default.contentsOfDirectory(atPath: path.string)
            } catch {
                throw PackageError(.io, "the folder cannot be read", archive: path, cause: error)
            }
            for name in names {
                let relative = folder.isEmpty ? name : folder + "/" + name
                if name.hasPrefix("."), !options.includesHidden {
                    skip(relative, "hidden")
                    continue
                }
                var status = stat()
                guard root.appending(relative).withPlatformString({ lstat($0, &status) }) == 0 else {
                    skip(relative, "\(Errno(rawValue: errno))")
                    continue
                }
                switch status.st_mode & S_IFMT {
                case S_IFDIR: folders.append(relative)
                case S_IFREG: if let file = try file(relative, status, skip) { found.append(file) }
                default: skip(relative, "neither a file nor a folder")
                }
            }
        }
        return found.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }

    private func file(_ name: String, _ status: stat, _ skip: (String, String) -> Void) throws -> File? {
        if let limit = options.maxItemBytes, Int64(status.st_size) > limit {
            skip(name, "more than \(limit) bytes")
            return nil
        }
        if let pattern = options.excludes.first(where: { fnmatch($0, name, 0) == 0 }) {
            skip(name, "excluded by \(pattern)")
            return nil
        }
        if let objection = MemberName.objection(Array(name.utf8)) {
            skip(name, objection)
            return nil
        }
        #if canImport(Darwin)
            let modified = Int64(status.st_mtimespec.tv_sec)
        #else
            let modified = Int64(status.st_mtim.tv_sec)
        #endif
        return File(
            name: name, path: root.appending(name), length: Int64(status.st_size), modified: modified)
    }
}
