module bench_go

go 1.23

require github.com/ecodeclub/ekit v0.0.10

require (
	golang.org/x/exp v0.0.0-20231006140011-7918f672742d // indirect
	golang.org/x/sync v0.4.0 // indirect
)
