import Locks
import SystemPackage

/// The store that a program may agree on; see `Store.shared`.
enum SharedStore: ProcessGlobal {
    fileprivate final class Place: Sendable {
        let store = EngineMutex<Store?>(nil)
    }

    // SAFETY: written only in a child of fork(2), by its only thread.
    nonisolated(unsafe) fileprivate static var place = Place()

    static func prepare() { _ = place }

    static func rehearse() {
        var other = Place()
        replace(&other, with: Place()).release()
    }

    static func beginAgain() { replace(&place, with: Place()) }
}

extension Store {
    /// A store for the whole program, if the program has set one. It is never created automatically.
    public static var shared: Store? {
        get { SharedStore.place.store.withLock { $0 } }
        set { SharedStore.place.store.withLock { $0 = newValue } }
    }

    /// The default path of a program's store: `larder` in `$XDG_CACHE_HOME` or `~/.cache` on Linux (XDG Base Directory
    /// Specification), in `~/Library/Caches` on macOS. Without `HOME` the home directory is that of the user database
    /// (getpwuid_r(3)); a user without one has a directory of their own in `/tmp`.
    public static var defaultPath: FilePath {
        guard let home = environment("HOME") ?? homeDirectory() else {
            return FilePath("/tmp/larder-\(geteuid())")
        }
        #if canImport(Darwin)
            return FilePath(home).appending("Library/Caches/larder")
        #else
            // "All paths set in these environment variables must be absolute"; others are ignored.
            if let base = environment("XDG_CACHE_HOME"), base.hasPrefix("/") {
                return FilePath(base).appending("larder")
            }
            return FilePath(home).appending(".cache/larder")
        #endif
    }

    /// What the user database says; nil if that is not a directory.
    private static func homeDirectory() -> String? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var text = [CChar](repeating: 0, count: 16 << 10)
        guard getpwuid_r(geteuid(), &entry, &text, text.count, &found) == 0, found != nil, let home = entry.pw_dir
        else {
            return nil
        }
        let path = FilePath(String(cString: home))
        return path.isAbsolute && (try? FileSystem.status(path: path))?.isDirectory == true ? path.string : nil
    }

    static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}

extension Store {
    /// Checks that the store is still where it was opened: throws if its directory, or the index in it, was removed,
    /// renamed or replaced since. In that case entries can still be read, but new puts are lost with the directory.
    ///
    /// Cheap: two calls of the file system, stat(2) and fstatat(2). Errors: `closed`; `io`, whose remedy is to open the
    /// store again.
    public func checkPlace() throws {
        try requireOpen()
        try engine.context.checkPlace()
    }
}
