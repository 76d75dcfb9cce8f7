extension Environment {
    /// Walks all pages that the latest state uses, while others read and write. Throws the first `PageDamage`.
    ///
    /// A snapshot keeps the pages from being reused. Taking one reads only the meta pages and the reader table.
    /// - Parameters:
    ///   - bigValues: `heads` costs a read for each value that does not fit a page.
    ///   - pause: called before each page; an error that it throws ends the walk and is passed on.
    @discardableResult
    public func checkPages(
        _ bigValues: PageWalk<FilePages>.BigValues = .placed, pause: (() throws -> Void)? = nil
    ) throws -> [String: KeyOrder] {
        try walkPages(bigValues, isTolerant: false, pause).trees
    }

    /// All damage that such a walk finds, up to the first thousand places.
    public func damagedPages(_ bigValues: PageWalk<FilePages>.BigValues = .placed) throws -> [PageDamage] {
        try walkPages(bigValues, isTolerant: true).damages
    }

    private func walkPages(
        _ bigValues: PageWalk<FilePages>.BigValues, isTolerant: Bool, _ pause: (() throws -> Void)? = nil
    ) throws -> PageWalk<FilePages> {
        // The transaction after the next one overwrites the meta page of a snapshot: then another snapshot is taken.
        for _ in 0..<1000 {
            let done = try readUnpooled { snapshot -> PageWalk<FilePages>? in
                let pages = try FilePages(descriptor: dataDescriptor)
                let metas = try MetaPage.all(pages)
                guard let meta = metas.first(where: { $0.transaction == snapshot.id }) else { return nil }
                var walk = PageWalk(pages, meta, bigValues: bigValues, isTolerant: isTolerant)
                walk.pause = pause
                try walk.run()
                return walk
            }
            if let done { return done }
        }
        throw PageDamage(page: 0, tree: "file", what: "no meta page is that of the latest transaction")
    }
}
