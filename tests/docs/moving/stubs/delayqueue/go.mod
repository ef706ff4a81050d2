module github.com/hdt3213/delayqueue

go 1.19
