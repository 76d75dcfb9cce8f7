extension Store {
    /// Whether the store still is where it was opened: throws if its directory, or the index in it, was removed,
    /// renamed or replaced since. Entries can be read then, and what is put is lost with the directory.
    ///
    /// Cheap: two calls of the file system, stat(2) and fstatat(2). Errors: `closed`; `io`, whose remedy is to open the
    /// store again.
    public func checkPlace() throws {
        try requireOpen()
        try engine.checkPlace()
    }
}

extension Engine {
    func checkPlace() throws {
        func lost(_ what: String) -> LarderError {
            LarderError(.io, "\(what) while the store was open: close it and open it again", path: path)
        }
        guard let found = try FileSystem.status(path: path) else { throw lost("\(path) was removed or renamed") }
        let own = try FileSystem.status(files.root.descriptor, path: path)
        guard found.device == own.device, found.inode == own.inode else { throw lost("\(path) was replaced") }
        guard try FileSystem.status(Layout.data, in: files.index) != nil,
            try Layout.directories.allSatisfy({ try FileSystem.status($0, in: files.root) != nil })
        else { throw lost("files of \(path) were removed") }
    }
}
