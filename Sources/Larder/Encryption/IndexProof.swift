import LMDB

/// Ties the index of an encrypted store to its data key, and says that it is one: the row `sealed` of `meta`, which is
/// not sealed. So a file `encryption` that is lost, or that of another store, is noticed before anything is changed.
enum IndexProof {
    static let key = Array("sealed".utf8)
    private static let database = "meta"

    /// Throws unless the index is that of the store that the cipher opens, or plain where there is none.
    static func require(_ environment: Environment, _ files: StoreFiles) throws {
        // Rows of this handle are as they are in the file.
        guard let raw = try environment.openDatabase(database, order: .bytes, create: false) else { return }
        let (found, rows) = try environment.read { transaction in
            (try transaction.get(raw, key).map { Array($0) }, try transaction.statistics(raw).entries)
        }
        try require(found, rows: rows, opens: { try opensState(environment) }, files)
    }

    /// True if the state row can be opened: then the key is right, whatever happened to the proof.
    private static func opensState(_ environment: Environment) throws -> Bool {
        guard let meta = try Index(environment: environment, create: false)?.meta else { return false }
        return try environment.read { try $0.get(meta, Index.stateKey).map { !$0.isEmpty } ?? false }
    }

    /// Writes it to an index that is made, if the store is encrypted.
    static func write(_ transaction: WriteTransaction, _ environment: Environment, _ files: StoreFiles) throws {
        guard let cipher = files.cipher,
            let raw = try environment.openDatabase(database, order: .bytes, create: false)
        else { return }
        try transaction.put(raw, key, cipher.proof)
    }

    /// As above, of a row that was found in a file.
    /// - Parameters:
    ///   - rows: how many there are in `meta`.
    ///   - opens: whether the key opens what is in the index.
    static func require(_ found: [UInt8]?, rows: Int, opens: () throws -> Bool, _ files: StoreFiles) throws {
        switch (found, files.cipher) {
        case (nil, nil): return
        case (_?, nil): throw StoreKey.lost(files.root)
        case (nil, _?) where rows == 0: return
        case (let found?, let cipher?) where found == cipher.proof: return
        case (_, _?):
            if try opens() { return }
            let path = files.root.path(of: Layout.encryption)
            throw LarderError(
                .wrongKey,
                "\(path) does not belong to the index beside it: put the file back that the store had; nothing was changed",
                path: path)
        }
    }
}
