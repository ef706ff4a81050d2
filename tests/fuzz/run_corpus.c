/* run_corpus.c - runs a fuzz target on every file of the folders given, without a fuzzer. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *folder, const char *name)
{
    char path[4096];
    static uint8_t bytes[1 << 20];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    /* Exactly as many bytes, so that a reader which goes beyond them is seen. */
    uint8_t *exact = malloc(len > 0 ? len : 1);
    if (exact == NULL)
        return -1;
    for (size_t i = 0; i < len; i++)
        exact[i] = bytes[i];
    (void)LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int files = 0;

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);

        if (dir == NULL) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            if (entry->d_name[0] == '.')
                continue;
            if (run_file(argv[i], entry->d_name) != 0)
                return 1;
            files++;
        }
        closedir(dir);
    }
    printf("%d inputs\n", files);
    return files > 0 ? 0 : 1;
}
