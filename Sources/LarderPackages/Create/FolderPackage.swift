import HTTPCaching
import Larder
import SystemPackage

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
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
        let (base, host, path) = try self.base(files)
        let folder = FolderWalk(FilePath(files.folder), files)
        for file in try folder.files(writer.skip) {
            let url = base + "/" + URLText.encoded(path: file.name)
            if url.utf8.count > MemberName.longestURL {
                writer.skip(file.name, "the URL has more than \(MemberName.longestURL) bytes")
                continue
            }
            onMember(file.name)
            let digest = try file.digest()
            let whole = (files.usesFileTimes ? file.modified : now.microseconds / 1_000_000) + files.lastModifiedOffset
            let lastModified = try moment(whole, file)
            let expires = try files.maxAge.map { try moment(whole + $0, file) }
            let type = files.hasMediaTypes ? files.mediaTypes.type(of: file.name) : nil
            var fields: [[String]] = []
            if let type { fields.append(["Content-Type", type]) }
            fields.append(["Last-Modified", format(lastModified)])
            if let expires { fields.append(["Expires", format(expires)]) }
            let place = place(of: file.name, host, path)
            try writer.add(
                PackageWriter.Member(
                    url: url, path: place, digest: digest,
                    length: file.length, fields: fields, lastModified: lastModified, expires: expires,
                    mediaType: type, source: FileSource(file.path, length: file.length, digest: digest)))
        }
        if let data = files.dataFolder { try add(data, files, writer) }
        return try writer.finish(baseURL: base)
    }

    private static func add(_ folder: String, _ files: FolderOptions, _ writer: PackageWriter) throws {
        var all = files
        (all.maxItemBytes, all.excludes) = (nil, [])
        let key = files.dataKey.flatMap { $0.isEmpty ? nil : $0 + "/" } ?? ""
        if !key.isEmpty, let objection = MemberName.objection(Array((key + "x").utf8)) {
            throw PackageError(.unsafeName, "the key '\(Key(key))' of the user data cannot be used: \(objection)")
        }
        for file in try FolderWalk(FilePath(folder), all).files(writer.skip) {
            let name = key + file.name
            if let objection = MemberName.objection(Array((MemberList.dataFolder + name).utf8)) {
                writer.skip(name, objection)
                continue
            }
            let digest = try file.digest()
            try writer.add(
                data: name, FileSource(file.path, length: file.length, digest: digest), digest: digest,
                modified: Timestamp(microseconds: file.modified * 1_000_000))
        }
    }

    /// The base URL without a slash at its end, its host without a port, and its path.
    private static func base(_ files: FolderOptions) throws -> (url: String, host: String, path: String) {
        let given = files.baseURL.utf8
        let base = URLText.encoded(given.last == UInt8(ascii: "/") ? String(given.dropLast())! : files.baseURL)
        // Other programs take a name that begins with a dot for a hidden one, and `..` leads out of a folder.
        guard !base.utf8.contains(where: { "?#".utf8.contains($0) }), PackageStore.key(of: base) != nil,
            let (host, path) = URLText.hostAndPath(base), host.utf8.first != UInt8(ascii: "."),
            base.utf8.count <= longestBase
        else {
            throw PackageError(
                .badManifest,
                "the base URL '\(Key(files.baseURL))' is not an HTTP URL without a query, a fragment and a user name")
        }
        return (base, host, path)
    }

    private static let longestBase = 2_000

    /// The name of a member as an installation looks for it: `HOST/PATH` without escapes. Nil if that cannot be one.
    private static func place(of name: String, _ host: String, _ path: String) -> String? {
        guard let path = URLText.decoded(path) else { return nil }
        let place = host + path + "/" + name
        // What separates the fields of a manifest cannot be in one.
        if (place + " ").utf8.firstRange(of: " ; ".utf8) != nil { return nil }
        return MemberName.objection(Array(place.utf8)) == nil ? place : nil
    }

    /// A moment of a response, which HTTP can name: its years have four digits.
    private static func moment(_ seconds: Int64, _ file: FolderWalk.File) throws -> Timestamp {
        guard (-62_135_596_800...253_402_300_799).contains(seconds) else {
            throw PackageError(
                .badManifest, "its Last-Modified or Expires is not between the years 1 and 9999", member: file.name)
        }
        return Timestamp(microseconds: seconds * 1_000_000)
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
            for bytes in try Self.names(in: path) {
                let text = String(decoding: bytes, as: UTF8.self)
                let relative = folder.isEmpty ? text : folder + "/" + text
                guard let name = String(validating: bytes, as: UTF8.self) else {
                    skip(relative, "the name is not UTF-8")
                    continue
                }
                if name.utf8.first == UInt8(ascii: "."), !options.includesHidden {
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

    /// The names in a folder, in the order of the system. readdir(3).
    private static func names(in path: FilePath) throws -> [[UInt8]] {
        guard let folder = path.withPlatformString({ opendir($0) }) else {
            throw PackageError(.io, "the folder cannot be read", archive: path, cause: Errno(rawValue: errno))
        }
        defer { closedir(folder) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(folder) else { break }
            let bytes = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if bytes != Array(".".utf8), bytes != Array("..".utf8) { names.append(bytes) }
        }
        if errno != 0 {
            throw PackageError(.io, "the folder cannot be read", archive: path, cause: Errno(rawValue: errno))
        }
        return names
    }

    private func file(_ name: String, _ status: stat, _ skip: (String, String) -> Void) throws -> File? {
        if let limit = options.maxItemBytes, Int64(status.st_size) > limit {
            skip(name, "more than \(limit) bytes")
            return nil
        }
        if let pattern = options.excludes.first(where: { PathPattern($0).matches(name) }) {
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
