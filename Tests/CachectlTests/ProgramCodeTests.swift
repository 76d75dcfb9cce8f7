import Testing

@testable import CachectlCore

/// Code that only the start of a server needed.
struct ProgramCodeTests {
    @Test func onlyCodeOfFilesIsReleased() {
        let maps = """
            55d0f8e00000-55d0fb71a000 r-xp 00000000 fe:00 131 /usr/bin/cachectl
            55d0fb71a000-55d0fb842000 r--p 0291a000 fe:00 131 /usr/bin/cachectl
            55d0fb842000-55d0fdda6000 rw-p 02a42000 fe:00 131 /usr/bin/cachectl
            55d0fdda6000-55d0fdee1000 rw-p 00000000 00:00 0 [heap]
            7f0000000000-7f0040000000 r--s 00000000 fe:00 262 /var/cache/larder/index/data.mdb
            7f6a3c000000-7f6a3c156000 r-xp 00026000 fe:00 9 /usr/lib/a library/libc.so.6
            7f6a3d000000-7f6a3d001000 rwxp 00000000 fe:00 10 /usr/lib/libwritten.so
            7ffc1b9f0000-7ffc1b9f2000 r-xp 00000000 00:00 0 [vdso]
            7f6a3e000000-7f6a3e001000 r-xp 00000000 00:00 0
            7f6a3f000000 r-xp 00000000 fe:00 9 /broken
            """
        #expect(
            ProgramCode.mappings(maps) == [
                0x55d0_f8e0_0000..<0x55d0_fb71_a000, 0x7f6a_3c00_0000..<0x7f6a_3c15_6000,
            ])
        #expect(ProgramCode.mappings("").isEmpty)
    }

    /// It comes back when it is called.
    @Test func aProgramRunsOnAfterIt() {
        ProgramCode.release()
        #expect("runs".uppercased() == "RUNS")
    }
}
