-- revoked.lua - jobs that were cancelled while somebody held them: none of them comes again.
--
-- KEYS  before g:TOPIC of each: x
--
-- `x` names them.  Whatever ends a job forgets that first: so half of a torn script leaves nothing
-- there, but the job may come again.
local x = KEYS[#KEYS - 6 - topics]
