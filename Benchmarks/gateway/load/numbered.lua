-- Asks for a URL of its own in each request: the path given after `--`, and a number. Its counts are those of counts.lua.
local number = 0
local prefix

function init(arguments)
    prefix = arguments[1]
end

function request()
    number = number + 1
    return wrk.format(nil, prefix .. number)
end

local here = debug.getinfo(1, "S").source:sub(2):match("(.*/)")
dofile(here .. "counts.lua")
