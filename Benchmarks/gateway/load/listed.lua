-- Sends the requests that a file has, in order, again and again: a path and a field, or only the path, in each line. The file is
-- given after `--`. Its counts are those of counts.lua.
local requests = {}
local number = 0

function init(arguments)
    local host = wrk.headers["Host"]
    for line in io.lines(arguments[1]) do
        local path, name, value = line:match("^(%S+) ([^:]+): (.*)$")
        path = path or line
        wrk.headers = { ["Host"] = host }
        if name then wrk.headers[name] = value end
        requests[#requests + 1] = wrk.format(nil, path)
    end
end

function request()
    number = number % #requests + 1
    return requests[number]
end

local here = debug.getinfo(1, "S").source:sub(2):match("(.*/)")
dofile(here .. "counts.lua")
