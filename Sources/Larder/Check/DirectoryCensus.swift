/// A walk over the files of a store's directory: what its own files take, and which names are not its own.
struct DirectoryCensus {
    /// Sum of `st_blocks` x 512 over the store's own files.
    private(set) var allocated: Int64 = 0
    /// Paths below the root of what belongs to someone else. A directory is one name, whatever is in it.
    private(set) var foreign: [String] = []

    init(_ root: Directory) throws(LarderError) { try visit(root, .root, "") }

    private mutating func visit(
        _ directory: Directory, _ place: Layout.Place, _ path: String
    ) throws(LarderError) {
        for name in try directory.names() {
            guard Layout.isOwn(name, in: place) else {
                foreign.append(path + name)
                continue
            }
            guard let status = try FileSystem.status(name, in: directory) else { continue }
            let inner = Self.place(of: name, in: place)
            if status.isRegular, inner == nil {
                allocated += status.allocated
            } else if status.isDirectory, let inner {
                try visit(directory.directory(name), inner, path + name + "/")
            } else {
                foreign.append(path + name)
            }
        }
    }

    private static func place(of name: String, in place: Layout.Place) -> Layout.Place? {
        switch (place, name) {
        case (.root, Layout.index): .index
        case (.root, Layout.blobs): .blobs
        case (.root, Layout.staging): .staging
        case (.root, Layout.trash): .trash
        case (.root, Layout.quarantine): .quarantine
        case (.index, Layout.rebuilt): .rebuilt
        case (.blobs, _): .shard
        default: nil
        }
    }
}
