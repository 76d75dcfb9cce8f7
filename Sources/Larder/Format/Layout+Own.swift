extension Layout {
    /// A directory of a store, for the question which names in it are the store's own.
    enum Place {
        case root
        case index
        case rebuilt
        case blobs
        case shard
        case staging
        case trash
        case quarantine
    }

    /// True if the store makes files or directories of that name there. All others belong to someone else: a file
    /// system's `lost+found`, an editor's copies. They are not counted, not checked and not removed.
    static func isOwn(_ name: String, in place: Place) -> Bool {
        switch place {
        case .root: [tag, format, newFormat, encryption, newEncryption].contains(name) || directories.contains(name)
        case .index: [data, lock, ledger, counters, rebuilt].contains(name)
        case .rebuilt: name == data || name == lock
        case .blobs: name.utf8.count == 2 && UInt8(name, radix: 16) != nil && name == name.lowercased()
        case .shard: Digest(hexadecimal: name) != nil
        case .staging: instance(ofStaged: name) != nil
        case .trash: parseTrash(name) != nil
        case .quarantine: Digest(hexadecimal: name) != nil || name.hasSuffix("-" + data)
        }
    }

    /// What a file system makes in the root of a volume: a new store may lie beside it.
    static func isOfVolume(_ name: String) -> Bool {
        ["lost+found", ".Spotlight-V100", ".Trashes", ".fseventsd"].contains(name)
    }
}

extension Directory {
    /// The names of the store's own files and directories here.
    func names(of place: Layout.Place) throws(LarderError) -> [String] {
        try names().filter { Layout.isOwn($0, in: place) }
    }

    /// The store's own files here. Something else under such a name, a directory or a FIFO, belongs to someone else.
    func ownFiles(_ place: Layout.Place) throws(LarderError) -> [String] {
        var found: [String] = []
        for name in try names(of: place) where try FileSystem.status(name, in: self)?.isRegular == true {
            found.append(name)
        }
        return found
    }
}
