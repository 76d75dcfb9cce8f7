-- Each connection waits 1 to 3 ms after an answer, so that the load is moderate and the same for every server: the clock of a
-- request starts when it is written, after the wait. Beside it, the counts of counts.lua.
delay = function()
    return math.random(1, 3)
end

local here = debug.getinfo(1, "S").source:sub(2):match("(.*/)")
dofile(here .. "counts.lua")
