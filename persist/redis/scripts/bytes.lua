-- bytes.lua - which of two ids comes later: by bytes, and not by the letters of some language.
local function is_behind(id, place)
    for i = 1, #place do
        local a, b = string.byte(id, i) or -1, string.byte(place, i)
        if a ~= b then
            return a > b
        end
    end
    return #id > #place
end
