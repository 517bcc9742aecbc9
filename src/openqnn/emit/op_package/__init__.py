"""Op packages as source: folders of C++ and Makefiles for libraries that backends load."""
