package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The private redis-server: with the same options as that of libdue's cells.
var server struct {
	command *exec.Cmd
	folder  string
}

// startServer returns the path of its socket.
func startServer() string {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		die(cannot, "redis-server is not installed")
	}
	if server.folder, err = os.MkdirTemp("", "due_redis_"); err != nil {
		die(wrong, "%v", err)
	}
	socket := filepath.Join(server.folder, "redis.sock")
	server.command = exec.Command(program, "--port", "0", "--save", "", "--appendonly", "no",
		"--unixsocket", socket, "--dir", server.folder)
	server.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.command.Start(); err != nil {
		die(wrong, "%v", err)
	}
	for range 4000 {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return socket
		}
		time.Sleep(5 * time.Millisecond)
	}
	die(wrong, "redis-server does not answer")
	return ""
}

// serverSeconds is the processor time of its main thread; below 0: not known.
func serverSeconds() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", server.command.Process.Pid))
	var ns uint64
	if err != nil {
		return -1
	}
	if n, _ := fmt.Sscan(string(text), &ns); n != 1 {
		return -1
	}
	return float64(ns) / 1e9
}

// cleanUp ends what was started.
func cleanUp() {
	stopCrew()
	if server.command != nil && server.command.Process != nil {
		_ = server.command.Process.Kill()
		_ = server.command.Wait()
		server.command = nil
	}
	if server.folder != "" {
		_ = os.RemoveAll(server.folder)
	}
}
